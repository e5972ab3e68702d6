import Glibc
import Testing

@testable import ConcourseTool

@Suite("ProgramSearch")
struct ProgramSearchTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("the first that can be run wins; one that cannot be run is reported only if there is no other")
  func path() throws {
    let text = try folder.write([], to: "a/tool")
    let program = try folder.write([], to: "b/tool", mode: 0o755)
    try folder.write([], to: "c/tool", mode: 0o755)
    _ = try folder.place("d/tool/x")
    let home = folder.path
    #expect(
      ProgramSearch.find("tool", searchPath: "\(home)/none:\(home)/a:\(home)/b:\(home)/c") == .found(program))
    #expect(ProgramSearch.find("tool", searchPath: "\(home)/a:\(home)/none") == .notRunnable(text, EACCES))
    #expect(ProgramSearch.find("tool", searchPath: "\(home)/d") == .notRunnable("\(home)/d/tool", EISDIR))
    #expect(ProgramSearch.find("tool", searchPath: "\(home)/none") == .absent)
    #expect(ProgramSearch.find("", searchPath: "\(home)/b") == .absent)
  }

  @Test("a name with a slash is a path")
  func slash() throws {
    let program = try folder.write([], to: "b/tool", mode: 0o755)
    #expect(ProgramSearch.find(program, searchPath: "") == .found(program))
    #expect(ProgramSearch.find("\(program)/x", searchPath: nil) == .absent)
    #expect(ProgramSearch.find("b/tool", searchPath: folder.path) == .absent)
  }

  @Test("without PATH the system's folders are searched")
  func noPath() {
    #expect(ProgramSearch.find("sh", searchPath: nil) == .found("/bin/sh"))
  }
}
