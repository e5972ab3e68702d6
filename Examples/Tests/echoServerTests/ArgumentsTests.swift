import EchoKit
import Testing

@Suite struct ArgumentsTests {
  @Test func everyOption() throws {
    var expected = Options()
    expected.host = "::1"
    expected.port = 80
    expected.maximumConnections = 7
    expected.grace = 0
    expected.quiet = true
    let words = ["--host", "::1", "--port=80", "--max-connections", "7", "--grace=0", "-q"]
    #expect(try Arguments.parse(words) == .serve(expected))
    #expect(try Arguments.parse([]) == .serve(Options()))
    #expect(try Arguments.parse(["--help", "--nonsense"]) == .help)
    #expect(try Arguments.parse(["-V"]) == .version)
  }

  @Test(arguments: [
    (["--port"], "--port needs a value"),
    (["--port="], "--port needs a value"),
    (["-p", "65536"], "-p: not a number from 0 to 65535: 65536"),
    (["--grace", "-1"], "--grace: not a number from 0 to 86400: -1"),
    (["--max-connections=0"], "--max-connections: not a number from 1 to 1000000: 0"),
    (["--quiet=yes"], "no such option with a value: --quiet"),
    (["7007"], "no such option: 7007"),
    ([""], "no such option: "),
  ])
  func mistakes(words: [String], message: String) {
    let error = #expect(throws: UsageError.self) { try Arguments.parse(words) }
    #expect(error?.message == message)
  }
}
