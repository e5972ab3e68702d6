import DupesKit
import Testing

@Suite struct ArgumentsTests {
  private func parse(_ arguments: String...) throws -> Options {
    guard case .search(let options) = try Arguments.parse(arguments.map(\.bytes)) else {
      throw UnexpectedCommand()
    }
    return options
  }

  private struct UnexpectedCommand: Error {}

  @Test func everyOptionIsUnderstood() throws {
    let options = try parse(
      "-f", "dir", "--hardlinks", "-e", "-j", "3", "--min-size=2K", "-0", "-q", "--progress")
    #expect(options.roots == ["dir".bytes])
    #expect(options.follow && options.hardLinks && options.empty && options.quiet)
    #expect(options.endsNamesWithNull && options.progress == true)
    #expect(options.jobs == 3)
    #expect(options.minimumSize == 2048)
    #expect(try parse("--json", "--no-progress", "d").format == .json)
    #expect(try parse("--no-progress", "d").progress == false)
    #expect(try parse("d").progress == nil)
  }

  @Test func namesMayLookLikeOptions() throws {
    #expect(try parse("--", "-f", "--").roots == ["-f".bytes, "--".bytes])
    #expect(try parse("-").roots == ["-".bytes])
  }

  @Test func namesNeedNotBeUTF8() throws {
    guard case .search(let options) = try Arguments.parse([[0xFF, 0xFE]]) else { throw UnexpectedCommand() }
    #expect(options.roots == [[0xFF, 0xFE]])
  }

  @Test(
    arguments: [("0", 0), ("17", 17), ("3K", 3072), ("2M", 2 << 20), ("1G", 1 << 30)] as [(String, Int64)])
  func sizes(text: String, size: Int64) throws {
    #expect(try parse("--min-size", text, "d").minimumSize == size)
  }

  @Test(arguments: [
    [], ["-x", "d"], ["--min-size"], ["--min-size", "K", "d"], ["--min-size", "-1", "d"],
    ["--min-size", "1T", "d"], ["--min-size", "9223372036854775807K", "d"], ["--jobs", "0", "d"],
    ["--jobs=", "d"], ["--jobs", "two", "d"], ["--follow=yes", "d"], ["--json", "-0", "d"], [""],
  ])
  func whatMakesNoSenseIsRefused(arguments: [String]) {
    #expect(throws: UsageError.self) { try Arguments.parse(arguments.map(\.bytes)) }
  }
}
