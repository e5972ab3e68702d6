import Concourse
import Glibc
import Testing

@testable import GuideKit

/// What a listing prints, line by line.
func lines(_ body: (@escaping Output) -> Void) -> [String] {
  let lines = Guarded([String]())
  body { line in lines.use { $0.append(line) } }
  return lines.use { $0 }
}

extension DispatchSemaphore {
  /// Waits for something that must come. Long, as nobody waits so long unless it does not.
  func comes() -> Bool { wait(timeout: .now() + .seconds(60)) == .success }
}

/// A run of the built program.
struct GuideRun {
  let status: Int32
  let lines: [String]

  /// Runs the program that the package manager put beside this test's own executable.
  init(_ arguments: String...) throws {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &buffer, buffer.count)
    let me = String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let program = me.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/guide"
    let stream = try #require(popen("'\(program)' \(arguments.joined(separator: " ")) 2>&1", "r"))
    var output: [UInt8] = []
    while true {
      let byte = fgetc(stream)
      if byte == EOF { break }
      output.append(UInt8(truncatingIfNeeded: byte))
    }
    let status = pclose(stream)
    self.status = status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    lines = String(decoding: output, as: UTF8.self).split(separator: "\n").map { String($0) }
  }
}
