import ExampleSupport
import Testing

@testable import tail_many

/// Whole lines of pieces, and the start of the last lines.
@Suite struct LinesTests {
  @Test func anyCutGivesTheSameLines() {
    let text = "one\n\ntwo two\nthree\nrest"
    for first in 0...text.utf8.count {
      for second in first...text.utf8.count {
        let bytes = Bytes(text.utf8)
        var assembler = LineAssembler()
        var lines: Bytes = []
        for piece in [bytes[..<first], bytes[first..<second], bytes[second...]] {
          lines += Bytes(assembler.append(data(piece)))
        }
        #expect(lines == Bytes("one\n\ntwo two\nthree\n".utf8))
        #expect(!assembler.isEmpty)
        #expect(Bytes(assembler.finish()) == Bytes("rest\n".utf8))
        #expect(assembler.finish().count == 0)
      }
    }
  }

  @Test func piecesOfSeveralRegions() {
    var piece = data("a\nb".utf8)
    piece.append(data("c".utf8))
    piece.append(data("d\ne".utf8))
    var assembler = LineAssembler()
    #expect(Bytes(assembler.append(piece)) == Bytes("a\nbcd\n".utf8))
    #expect(Bytes(assembler.finish()) == Bytes("e\n".utf8))
  }

  @Test func aLongLineIsBroken() {
    var assembler = LineAssembler(limit: 4)
    #expect(Bytes(assembler.append(data("abc".utf8))) == [])
    #expect(Bytes(assembler.append(data("defghij".utf8))) == Bytes("abcd\nefgh\n".utf8))
    #expect(Bytes(assembler.append(data("\n".utf8))) == Bytes("ij\n".utf8))
  }

  @Test func lastLinesAreFound() {
    for text in [
      "", "\n", "a", "a\n", "a\nb", "a\nb\n", "\n\n\n", "one\ntwo\n\nfour\nfive", "one\ntwo\n\n\n",
    ] {
      for wanted in 0...7 {
        let start = data(text.utf8).startOfLastLines(wanted, isWhole: true)
        #expect(start == self.start(of: wanted, in: Bytes(text.utf8)), "\(wanted) of \(text)")
      }
    }
  }

  /// Where the data starts in the middle of a line, that line is left out.
  @Test func aLineWithoutItsStartIsLeftOut() {
    #expect(data("ne\ntwo\nthree\n".utf8).startOfLastLines(2, isWhole: false) == 3)
    #expect(data("ne\ntwo\nthree\n".utf8).startOfLastLines(3, isWhole: false) == 3)
    #expect(data("ne\ntwo\nthree\n".utf8).startOfLastLines(3, isWhole: true) == 0)
    #expect(data("no newline".utf8).startOfLastLines(3, isWhole: false) == 0)
  }

  /// The same by splitting.
  private func start(of wanted: Int, in bytes: Bytes) -> Int {
    var lines = bytes.split(separator: 10, omittingEmptySubsequences: false).map { $0.count + 1 }
    // What follows the last newline is a line only if it has bytes.
    if lines.last == 1 { lines.removeLast() } else { lines[lines.count - 1] -= 1 }
    return bytes.count - lines.suffix(wanted).reduce(0, +)
  }
}

private func data(_ bytes: some Collection<UInt8>) -> DispatchData {
  Bytes(bytes).withUnsafeBytes { DispatchData(bytes: $0) }
}
