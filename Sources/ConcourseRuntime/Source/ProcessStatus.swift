/// What the kernel's file system says of a process.
struct ProcessStatus: Equatable {
  /// Whether it has ended and only waits to be reaped.
  let hasEnded: Bool
  /// When it began, in ticks since boot.
  let birth: UInt64

  /// nil if there is no such process, or nothing can be read of it.
  init?(of identifier: Int32) {
    var text: [UInt8] = []
    // One line, unless the program's name has newlines in it.
    CgroupTree.forEachLine(of: Array("/proc/\(identifier)/stat".utf8)) { line in
      text += line
      return true
    }
    self.init(text)
  }

  /// Reads the line of a `stat` file; nil if it is none.
  init?(_ text: [UInt8]) {
    // The name in parentheses may itself contain anything: the fields go on after the last one.
    guard let nameEnd = text.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    let fields = text[(nameEnd + 1)...].split(separator: UInt8(ascii: " "))
    // The first field here is the third of the line, the state; the beginning is the 22nd.
    guard fields.count > 19, let state = fields[0].first,
      let birth = UInt64(String(decoding: fields[19], as: UTF8.self))
    else { return nil }
    hasEnded = state == UInt8(ascii: "Z") || state == UInt8(ascii: "X")
    self.birth = birth
  }
}
