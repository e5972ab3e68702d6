import TailKit
import Testing

/// Whole lines of pieces, and the place of the last ones.
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
        #expect(assembler.pendingCount == 4)
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
    #expect(assembler.pendingCount == 1)
  }

  @Test func aLineWithoutEndIsBroken() {
    var assembler = LineAssembler(limit: 4)
    #expect(Bytes(assembler.append(data("abc".utf8))) == [])
    #expect(Bytes(assembler.append(data("defghij".utf8))) == Bytes("abcd\nefgh\n".utf8))
    #expect(assembler.pendingCount == 2)
    #expect(Bytes(assembler.append(data("\n".utf8))) == Bytes("ij\n".utf8))
  }

  @Test(arguments: [1, 2, 3, 5, 64]) func lastLinesAreFoundWhateverTheBlock(block: Int) {
    for text in [
      "", "\n", "a", "a\n", "a\nb", "a\nb\n", "\n\n\n", "one\ntwo\n\nfour\nfive", "one\ntwo\n\n\n",
    ] {
      let bytes = Bytes(text.utf8)
      for wanted in 0...7 {
        #expect(scan(bytes, wanted, block) == start(of: wanted, in: bytes), "\(wanted) of \(bytes)")
      }
      #expect(scan(bytes, nil, block) == 0)
    }
  }

  /// What was there is no longer: the search ends, and the size will tell.
  @Test func aFileThatShrinksMeanwhile() {
    var scan = BackwardScan(size: 100, lines: 3, block: 10)
    #expect(scan.next == .read(offset: 90, length: 10))
    scan.show(.empty)
    #expect(scan.next == .found(90))
  }

  private func scan(_ bytes: Bytes, _ lines: Int?, _ block: Int) -> Int {
    var scan = BackwardScan(size: Int64(bytes.count), lines: lines, block: block)
    while true {
      switch scan.next {
      case .found(let offset): return Int(offset)
      case .read(let offset, let length): scan.show(data(bytes[Int(offset)..<Int(offset) + length]))
      }
    }
  }

  /// The same by way of splitting.
  private func start(of wanted: Int, in bytes: Bytes) -> Int {
    var lines = bytes.split(separator: 10, omittingEmptySubsequences: false).map { $0.count + 1 }
    // What follows the last newline is a line only if there is something.
    if lines.last == 1 { lines.removeLast() } else { lines[lines.count - 1] -= 1 }
    return bytes.count - lines.suffix(wanted).reduce(0, +)
  }
}

func data(_ bytes: some Collection<UInt8>) -> DispatchData {
  Bytes(bytes).withUnsafeBytes { DispatchData(bytes: $0) }
}
