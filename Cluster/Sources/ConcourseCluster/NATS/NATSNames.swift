/// The names by which the servers know a queue.
struct NATSNames: Sendable {
  /// The stream of the items that are not finished.
  let stream: String
  /// What their subjects begin with. The id that a program gave is in the subject, so that its item can be found.
  let subject: String
  /// The stream of the items that were put aside. No label leads to its name, since the "=" has no two digits.
  let failedStream: String
  /// What their subjects begin with. Each has a subject of its own.
  let failedSubject: String
  /// Says whether the queue is suspended, in the same stream.
  let suspensionSubject: String
  /// What the subjects of counted starts begin with, in the same stream.
  let startsSubject: String
  /// The stream of the ids that programs gave.
  let idsStream: String
  /// What their subjects begin with.
  let idsSubject: String
  /// The stream of the items that wait for their time.
  let laterStream: String
  /// What their subjects begin with.
  let laterSubject: String
  /// The stream of results. It is made for the first caller who wants one.
  let resultsStream: String
  /// What their subjects begin with.
  let resultsSubject: String
  /// Where workers tell that items of groups have ended.
  let hintSubject: String
  /// Where they tell that an item has ended for which others may wait.
  let turnSubject: String
  /// All workers of a queue share one consumer, and another one for the items that wait for their time.
  let consumer = "workers"

  init(label: String) {
    let name = Self.encoded(label)
    stream = "concourse_\(name)"
    failedStream = "concourse_\(name)=failed"
    laterStream = "concourse_\(name)=later"
    resultsStream = "concourse_\(name)=results"
    resultsSubject = "concourse.\(name).results"
    hintSubject = "concourse.\(name).ended"
    turnSubject = "concourse.\(name).turn"
    startsSubject = "concourse.\(name).starts"
    subject = "concourse.\(name).items"
    laterSubject = "concourse.\(name).later"
    failedSubject = "concourse.\(name).failed"
    suspensionSubject = "concourse.\(name).suspended"
    idsStream = "concourse_\(name)=ids"
    idsSubject = "concourse.\(name).ids"
  }

  /// The subject of an item.
  /// - Parameters:
  ///   - waits: Whether it waits for its time.
  ///   - order: `part(of:)`.
  ///   - id: The encoded id that a program gave.
  ///   - group: The encoded group.
  func place(waits: Bool, order: String = "-", _ id: String = "-", group: String = "-") -> String {
    "\(waits ? laterSubject : subject).\(order).\(id).\(group)"
  }

  static let barrier = "barrier"

  /// The part of a subject that says which items must have ended before.
  static func part(of order: ItemOrder) -> String {
    switch order {
    case .none: "-"
    case .barrier: barrier
    case .key(let key): "k-" + encoded(key)
    }
  }

  /// Whether a subject is one of those that a filter with "*" and ">" names.
  static func matches(_ subject: String, _ filter: String) -> Bool {
    let parts = subject.split(separator: ".", omittingEmptySubsequences: false)
    let filters = filter.split(separator: ".", omittingEmptySubsequences: false)
    for (index, filter) in filters.enumerated() {
      if filter == ">" { return index < parts.count }
      guard index < parts.count, filter == "*" || filter == parts[index] else { return false }
    }
    return parts.count == filters.count
  }

  /// The text without the characters that have a meaning in names and headers. Each byte but letters, digits, "-" and
  /// "_" becomes "=" and two digits.
  static func encoded(_ text: String) -> String {
    var name: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        name.append(byte)
      default:
        name.append(UInt8(ascii: "="))
        let digits = Array("0123456789ABCDEF".utf8)
        name.append(digits[Int(byte >> 4)])
        name.append(digits[Int(byte & 15)])
      }
    }
    return String(decoding: name, as: UTF8.self)
  }

  static func decoded(_ name: some StringProtocol) -> String {
    var text: [UInt8] = []
    var rest = Array(name.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "="),
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      {
        text.append(value)
        rest = rest.dropFirst(2)
      } else {
        text.append(byte)
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
