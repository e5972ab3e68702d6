import ExampleSupport
import Testing

/// Command lines, as all examples read them.
@Suite struct ArgumentsTests {
  private func arguments(_ words: String...) -> Arguments { Arguments(words.map { Bytes($0.utf8) }) }

  @Test func namesAndOptions() throws {
    var arguments = arguments("a", "-b", "--long", "-", "--", "--", "-c")
    let expected: [Arguments.Argument] = [
      .name(Bytes("a".utf8)), .option("-b"), .option("--long"), .name(Bytes("-".utf8)),
      .name(Bytes("--".utf8)),
      .name(Bytes("-c".utf8)),
    ]
    for argument in expected { #expect(try arguments.next() == argument) }
    #expect(try arguments.next() == nil)
  }

  @Test func namesNeedNotBeUTF8() throws {
    var arguments = Arguments([[0xFF, 0xFE], Bytes("--of=".utf8) + [0xFF]])
    #expect(try arguments.next() == .name([0xFF, 0xFE]))
    #expect(try arguments.next() == .option("--of"))
    #expect(try arguments.value() == [0xFF])
  }

  @Test(
    arguments: [
      ("0", 0), ("17", 17), ("3K", 3072), ("2M", 2 << 20), ("1G", 1 << 30), ("K", nil), ("-1", nil),
      ("1T", nil),
      ("", nil), ("9223372036854775807K", nil), ("9223372036854775808", nil),
    ] as [(String, Int?)])
  func sizes(text: String, size: Int?) throws {
    for var arguments in [arguments("--size", text), arguments("--size=\(text)")] {
      #expect(try arguments.next() == .option("--size"))
      #expect((try? arguments.size()) == size)
    }
  }

  @Test func numbers() throws {
    var arguments = arguments("-n", "7", "-n=8", "-n", "+1")
    _ = try arguments.next()
    #expect(try arguments.number(in: 1...7) == 7)
    _ = try arguments.next()
    #expect(throws: UsageError("-n: not a number from 1 to 7: 8")) { try arguments.number(in: 1...7) }
    _ = try arguments.next()
    #expect(throws: UsageError("-n: not a number from 1 to 7: +1")) { try arguments.number(in: 1...7) }
  }

  @Test func mistakes() throws {
    var missing = arguments("--port")
    _ = try missing.next()
    #expect(throws: UsageError("--port needs a value")) { try missing.value() }
    var empty = arguments("--port=")
    _ = try empty.next()
    #expect(throws: UsageError("--port needs a value")) { try empty.value() }
    var unused = arguments("--quiet=yes")
    _ = try unused.next()
    #expect(throws: UsageError("--quiet takes no value")) { try unused.next() }
    #expect(unused.unknownOption() == UsageError("no such option: --quiet"))
    var name = arguments("")
    #expect(throws: UsageError("a name is empty")) { try name.next() }
  }
}
