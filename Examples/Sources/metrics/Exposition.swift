/// The text that a scraper reads, in one of two formats.
///
/// OpenMetrics names a family of counters without `_total`, has units, and ends with a mark, so that a cut-off answer is
/// noticed. The older text format of Prometheus has none of that.
struct Exposition {
  enum Format: Equatable {
    case openMetrics, prometheus

    /// What the client asked for in its header `Accept`; OpenMetrics unless it wants plain text only.
    init(accepting header: String?) {
      let types = header?.lowercased() ?? ""
      self = types.contains("text/plain") && !types.contains("openmetrics") ? .prometheus : .openMetrics
    }

    var contentType: String {
      switch self {
      case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
      case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
      }
    }
  }

  enum Kind: String {
    case counter, gauge, histogram
  }

  typealias Labels = [(name: String, value: String)]

  let format: Format
  private(set) var text = ""

  init(_ format: Format) { self.format = format }

  /// Begins a family. A name with a unit ends with it.
  mutating func family(_ name: String, _ kind: Kind, unit: String? = nil, help: String) {
    let title = kind == .counter && format == .prometheus ? name + "_total" : name
    text += "# TYPE \(title) \(kind.rawValue)\n"
    if let unit, format == .openMetrics { text += "# UNIT \(title) \(unit)\n" }
    text += "# HELP \(title) \(escaped(help))\n"
  }

  mutating func sample(_ name: String, _ labels: Labels, _ value: Double) {
    let pairs = labels.map { "\($0.name)=\"\(escaped($0.value))\"" }.joined(separator: ",")
    text += "\(name)\(pairs.isEmpty ? "" : "{\(pairs)}") \(number(value))\n"
  }

  mutating func histogram(_ name: String, _ labels: Labels, _ histogram: Histogram) {
    for (limit, count) in zip(Histogram.limits, histogram.counts) {
      // A limit is always written as a fraction, so that it is the same text in each scrape.
      sample(name + "_bucket", labels + [("le", "\(Histogram.seconds(limit))")], Double(count))
    }
    sample(name + "_bucket", labels + [("le", "+Inf")], Double(histogram.count))
    sample(name + "_sum", labels, histogram.sum)
    sample(name + "_count", labels, Double(histogram.count))
  }

  mutating func end() {
    if format == .openMetrics { text += "# EOF\n" }
  }

  /// Integers without a fraction, which is easier to read; 0.001 rather than 1e-03.
  private func number(_ value: Double) -> String {
    Int(exactly: value).map(String.init) ?? "\(value)"
  }

  /// A label may be any text. Only these characters end a value, or a line.
  private func escaped(_ text: String) -> String {
    var result = ""
    for character in text.unicodeScalars {
      switch character {
      case "\\": result += "\\\\"
      case "\"": result += "\\\""
      case "\n": result += "\\n"
      default: result.unicodeScalars.append(character)
      }
    }
    return result
  }
}
