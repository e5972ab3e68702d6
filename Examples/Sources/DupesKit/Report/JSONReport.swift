/// The results as one JSON object:
///
///     {"sets": [{"size": 3, "files": [NAME, ...]}, ...],
///      "skipped": [{"path": ..., "reason": ...}, ...],
///      "summary": {"files": 9, "sets": 1, "duplicates": 1, "wastedBytes": 3, "skipped": 0}}
///
/// where NAME is `{"path": ...}`, with `"links": [NAME, ...]` if the file has further names.
///
/// JSON text is Unicode and a file name is not: a `path` that is not valid UTF-8 has each offending byte
/// replaced by U+FFFD, and beside it stands `"bytes"`, the exact name in hexadecimal digits. So the output
/// is valid JSON for every parser, and no name is lost. `bytes` is absent where `path` is exact.
struct JSONReport {
  private(set) var output: Bytes = []

  init(_ sets: [Outcome.DuplicateSet], _ outcome: Outcome) {
    write("{\"sets\": ")
    list(sets, "\n  ") { report, set in
      report.write("{\"size\": \(set.size), \"files\": ")
      report.list(set.files, "\n    ") { $0.file($1.names) }
      report.write("}")
    }
    write(",\n\"skipped\": ")
    list(outcome.skipped, "\n  ") { report, skipped in
      report.write("{")
      report.path(skipped.path)
      report.write(", \"reason\": ")
      report.string(Bytes(skipped.reason.text.utf8))
      report.write("}")
    }
    let waste = sets.waste
    write(",\n\"summary\": {\"files\": \(outcome.fileCount), \"sets\": \(sets.count), ")
    write("\"duplicates\": \(waste.files), \"wastedBytes\": \(waste.bytes), ")
    write("\"skipped\": \(outcome.skipped.count)}}\n")
  }

  private mutating func file(_ names: [Bytes]) {
    write("{")
    path(names[0])
    if names.count > 1 {
      write(", \"links\": ")
      list(Array(names.dropFirst()), " ") { report, name in
        report.write("{")
        report.path(name)
        report.write("}")
      }
    }
    write("}")
  }

  private mutating func path(_ name: Bytes) {
    write("\"path\": ")
    if string(name) { return }
    write(", \"bytes\": \"")
    for byte in name {
      output.append(JSONReport.digits[Int(byte >> 4)])
      output.append(JSONReport.digits[Int(byte & 15)])
    }
    write("\"")
  }

  /// Writes a string in quotes, and returns whether it could be written exactly.
  @discardableResult
  private mutating func string(_ bytes: Bytes) -> Bool {
    var exact = true
    output.append(UInt8(ascii: "\""))
    var rest = bytes[...]
    while let first = rest.first {
      let length = UTF8Sequence.length(at: rest)
      switch first {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): output += [UInt8(ascii: "\\"), first]
      case 0..<0x20, 0x7F:
        write("\\u00")
        output += [JSONReport.digits[Int(first >> 4)], JSONReport.digits[Int(first & 15)]]
      default:
        if length > 0 {
          output += rest.prefix(length)
        } else {
          exact = false
          write("\u{FFFD}")
        }
      }
      rest = rest.dropFirst(max(length, 1))
    }
    output.append(UInt8(ascii: "\""))
    return exact
  }

  private mutating func list<Element>(
    _ elements: [Element], _ separator: String, _ write: (inout JSONReport, Element) -> Void
  ) {
    output.append(UInt8(ascii: "["))
    for (place, element) in elements.enumerated() {
      if place > 0 { output.append(UInt8(ascii: ",")) }
      self.write(separator)
      write(&self, element)
    }
    output.append(UInt8(ascii: "]"))
  }

  private mutating func write(_ text: String) {
    output.append(contentsOf: text.utf8)
  }

  private static let digits = Bytes("0123456789abcdef".utf8)
}

/// Which bytes are UTF-8.
enum UTF8Sequence {
  /// How many bytes the well-formed sequence at the start of `bytes` has; 0 if there is none.
  static func length(at bytes: ArraySlice<UInt8>) -> Int {
    guard let first = bytes.first else { return 0 }
    // The second byte's range depends on the first: that is what rules out over-long forms, surrogates and
    // what lies above U+10FFFF.
    let (length, second): (Int, ClosedRange<UInt8>) =
      switch first {
      case 0...0x7F: (1, 0...0)
      case 0xC2...0xDF: (2, 0x80...0xBF)
      case 0xE0: (3, 0xA0...0xBF)
      case 0xED: (3, 0x80...0x9F)
      case 0xE1...0xEF: (3, 0x80...0xBF)
      case 0xF0: (4, 0x90...0xBF)
      case 0xF1...0xF3: (4, 0x80...0xBF)
      case 0xF4: (4, 0x80...0x8F)
      default: (0, 0...0)
      }
    if length <= 1 { return length }
    guard bytes.count >= length, second.contains(bytes[bytes.startIndex + 1]) else { return 0 }
    let tail = bytes[(bytes.startIndex + 2)..<(bytes.startIndex + length)]
    return tail.allSatisfy { 0x80...0xBF ~= $0 } ? length : 0
  }
}
