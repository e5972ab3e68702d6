import Glibc
import Testing

@testable import ConcourseTool

/// What runs get as their standard input.
@Suite("ExploredInput")
struct ExploredInputTests {
  /// What is made of a connection through which the text has come. Unlike that of a pipe, its end does not depend on
  /// which processes have inherited the other descriptor.
  private static func read(_ text: String, most: Int = ExploredInput.most) throws -> ExploredInput.Content {
    var ends: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
    defer { for end in ends { close(end) } }
    try #require(write(ends[1], text, text.utf8.count) == text.utf8.count)
    try #require(shutdown(ends[1], Int32(SHUT_WR)) == 0)
    return try ExploredInput.read(ends[0], most: most)
  }

  private static func content(of file: Int32) -> String {
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = pread(file, &bytes, bytes.count, 0)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  @Test("what comes through a pipe or a socket is kept in a file, which is opened anew at its beginning")
  func kept() throws {
    let text = String(repeating: "line\n", count: 10_000)
    guard case .kept(let file) = try Self.read(text) else {
      Issue.record("nothing was kept")
      return
    }
    defer { close(file) }
    for _ in 0..<2 {
      let opened = open("/proc/self/fd/\(file)", O_RDONLY | O_CLOEXEC)
      defer { close(opened) }
      var status = stat()
      #expect(fstat(opened, &status) == 0 && status.st_mode & S_IFMT == S_IFREG)
      #expect(lseek(opened, 0, SEEK_CUR) == 0)
      #expect(Self.content(of: opened) == text)
    }
  }

  @Test("one that has ended without a byte is an empty input, and not a silent one")
  func empty() throws {
    guard case .kept(let file) = try Self.read("") else {
      Issue.record("nothing was kept")
      return
    }
    defer { close(file) }
    #expect(Self.content(of: file) == "")
  }

  @Test("a pipe that stays open and brings nothing does not stop the command")
  func silent() throws {
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    #expect(try ExploredInput.read(ends[0], patience: 1) == .silent)
  }

  @Test("files and devices stay as they are")
  func others() throws {
    let device = open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { close(device) }
    #expect(try ExploredInput.read(device) == .asItIs)
    #expect(try ExploredInput.read(-1) == .asItIs)
  }

  @Test("too much is refused")
  func most() throws {
    #expect(throws: ScheduleRun.Failure.self) {
      try Self.read(String(repeating: "x", count: 100), most: 99)
    }
  }
}
