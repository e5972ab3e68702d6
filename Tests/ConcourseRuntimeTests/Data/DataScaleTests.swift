import Testing

@testable import ConcourseRuntime

extension Engine {
  /// Data of a million regions, on a worker's stack. Anything quadratic would not end.
  @Suite("DispatchData of many regions")
  struct DataScaleTests {
    private let count = Sanitizer.shrunk(1_000_000)

    /// Runs `body` on a worker, whose stack is small.
    private func onWorker(_ body: @escaping @Sendable () -> Void) {
      let done = DispatchSemaphore(value: 0)
      DispatchQueue.global().async {
        body()
        done.signal()
      }
      #expect(comes(done))
    }

    @Test("S115 a million appends of one byte")
    func bytes() {
      onWorker { [count] in
        var grown = DispatchData.empty
        for number in 0..<count {
          withUnsafeBytes(of: UInt8(truncatingIfNeeded: number &* 7)) { grown.append($0) }
        }
        check(grown, count)
        #expect(grown.regions.count < 64)
      }
    }

    @Test("S115 a million appends of data of one byte")
    func appended() {
      onWorker { [count] in
        let single = (0...255).map { data([UInt8($0)]) }
        var grown = DispatchData.empty
        for number in 0..<count { grown.append(single[number &* 7 & 255]) }
        grown.expectSoundness()
        check(grown, count)
        let half = grown.subdata(in: 0..<count / 2)
        grown = grown.subdata(in: count / 2..<count)
        var again = half
        again.append(grown)
        again.expectSoundness()
        check(again, count)
      }
    }

    @Test("S115 appending and prepending with every step's result kept")
    func persistent() {
      onWorker { [count] in
        let single = (0...255).map { data([UInt8($0)]) }
        var front = DispatchData.empty
        var back = DispatchData.empty
        var kept: [DispatchData] = []
        let steps = count / 10
        for number in 0..<steps {
          var longer = single[(steps - 1 - number) &* 7 & 255]
          longer.append(front)
          front = longer
          let before = back
          back.append(single[number &* 7 & 255])
          if number % 1000 == 0 { kept.append(before) }
        }
        check(front, steps)
        check(back, steps)
        front.expectSoundness()
        for (index, value) in kept.enumerated() { #expect(value.count == index * 1000) }
        #expect(kept[steps / 2000].elementsEqual(counting(steps / 2000 * 1000)))
      }
    }

    /// All ways to the bytes, of which number i is 7 * i.
    private func check(_ data: DispatchData, _ count: Int) {
      #expect(data.count == count)
      var total = 0
      data.enumerateBytes { region, position, _ in
        if region[0] != UInt8(truncatingIfNeeded: position &* 7) { total = -count }
        total += region.count
      }
      #expect(total == count)
      #expect(data.elementsEqual(counting(count)))
      for position in stride(from: 0, to: count, by: 101) {
        guard data[position] == UInt8(truncatingIfNeeded: position &* 7) else {
          Issue.record("byte \(position) is \(data[position])")
          break
        }
      }
      var copy = [UInt8](repeating: 0, count: count)
      #expect(copy.withUnsafeMutableBufferPointer { data.copyBytes(to: $0) } == count)
      #expect(copy == counting(count))
      let middle = data.subdata(in: count / 3..<count / 3 + count / 5)
      #expect(middle.first == UInt8(truncatingIfNeeded: count / 3 &* 7))
      #expect(middle.elementsEqual(counting(count)[count / 3..<count / 3 + count / 5]))
    }
  }
}
