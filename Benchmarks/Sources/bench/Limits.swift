/// What is expected of a row; the numbers are in limits.tsv.
enum Limit: Equatable {
  case speed(atLeast: Double)
  case apart(atLeast: Double)
  case partOfIncumbent(atMost: Double)
  case most(Double)
  case report
  case geometricMean(atLeast: Double)

  var isSpeed: Bool {
    switch self {
    case .speed, .apart: true
    case .partOfIncumbent, .most, .report, .geometricMean: false
    }
  }
}

struct Limits {
  private(set) var rows: [String: Limit] = [:]
  /// What plain C's value divided by ours comes to at least.
  private(set) var toC: [String: Double] = [:]
  private(set) var geometricMean: Double

  /// - Parameter name: the file, for what is wrong in it.
  init(text: String, name: String = "limits.tsv") throws(Failure) {
    var mean: Double?
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      let fields = line.split(separator: "\t").map(String.init)
      if fields.count == 2, fields[1] == "report" {
        rows[fields[0]] = .report
        continue
      }
      guard fields.count == 3, let number = Double(fields[2]) else {
        throw Failure("\(name): cannot read: \(line)")
      }
      switch fields[1] {
      case "speed": rows[fields[0]] = .speed(atLeast: number)
      case "apart": rows[fields[0]] = .apart(atLeast: number)
      case "incumbent": rows[fields[0]] = .partOfIncumbent(atMost: number)
      case "most": rows[fields[0]] = .most(number)
      case "C": toC[fields[0]] = number
      case "mean": mean = number
      default: throw Failure("\(name): unknown kind: \(line)")
      }
    }
    guard let mean else { throw Failure("\(name): no limit for the geometric mean") }
    geometricMean = mean
  }
}
