/// What is expected of a row; the numbers are in limits.tsv.
enum Limit: Equatable {
  case speed(atLeast: Double)
  case bytesOfIncumbent(atMost: Double)
  case bytes(atMost: Double)
  case geometricMean(atLeast: Double)

  var isMemory: Bool {
    switch self {
    case .bytesOfIncumbent, .bytes: true
    case .speed, .geometricMean: false
    }
  }
}

struct Limits {
  private(set) var rows: [String: Limit] = [:]
  private(set) var geometricMean: Double

  init(text: String) throws(Failure) {
    var mean: Double?
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      let fields = line.split(separator: "\t").map(String.init)
      guard fields.count == 3, let number = Double(fields[2]) else {
        throw Failure("limits.tsv: cannot read: \(line)")
      }
      switch fields[1] {
      case "speed": rows[fields[0]] = .speed(atLeast: number)
      case "incumbent": rows[fields[0]] = .bytesOfIncumbent(atMost: number)
      case "bytes": rows[fields[0]] = .bytes(atMost: number)
      case "mean": mean = number
      default: throw Failure("limits.tsv: unknown kind: \(line)")
      }
    }
    guard let mean else { throw Failure("limits.tsv: no limit for the geometric mean") }
    geometricMean = mean
  }
}
