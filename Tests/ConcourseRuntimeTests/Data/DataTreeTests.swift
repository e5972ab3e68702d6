import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// Random data compared with arrays.
@Suite("DispatchData against arrays")
struct DataModelTests {
  @Test("Joining and splitting at random", arguments: 0..<8)
  func random(run: Int) throws {
    var dice = Seed.dice(run)
    var pool: [(data: DispatchData, bytes: [UInt8])] = [(.empty, [])]
    for _ in 0..<Sanitizer.shrunk(3000) {
      var (value, bytes) = pool.randomElement(using: &dice)!
      switch Int.random(in: 0..<6, using: &dice) {
      case 0:
        bytes = (0..<Int.random(in: 0...200, using: &dice)).map { _ in .random(in: 0...255, using: &dice) }
        value = data(bytes)
      case 1:
        let more = (0..<Int.random(in: 0...40, using: &dice)).map { _ in
          UInt8.random(in: 0...255, using: &dice)
        }
        more.withUnsafeBytes { value.append($0) }
        bytes += more
      case 2, 3:
        let other = pool.randomElement(using: &dice)!
        value.append(other.data)
        bytes += other.bytes
      case 4:
        let lower = Int.random(in: 0...bytes.count, using: &dice)
        let upper = Int.random(in: lower...bytes.count, using: &dice)
        value = value.subdata(in: lower..<upper)
        bytes = Array(bytes[lower..<upper])
      default:
        // Alone in its variable, and so changed in place.
        let index = Int.random(in: 0..<pool.count, using: &dice)
        let other = pool.randomElement(using: &dice)!
        guard pool[index].bytes.count + other.bytes.count < 20_000 else { continue }
        value = .empty
        pool[index].data.append(other.data)
        pool[index].bytes += other.bytes
        [1, 2, 3].withUnsafeBytes { pool[index].data.append($0) }
        [1, 2, 3].withUnsafeBytes { pool[index].bytes += $0 }
        (value, bytes) = pool[index]
      }
      if bytes.count > 20_000 {
        (value, bytes) = (value.subdata(in: 9_000..<9_500), Array(bytes[9_000..<9_500]))
      }
      if dice.hits(oneIn: 10) { expect(value, equals: bytes, &dice) }
      if pool.count < 12 {
        pool.append((value, bytes))
      } else {
        pool[.random(in: 0..<12, using: &dice)] = (value, bytes)
      }
    }
    // Later operations have not changed earlier values.
    for (value, bytes) in pool { expect(value, equals: bytes, &dice) }
  }

  private func expect(_ value: DispatchData, equals bytes: [UInt8], _ dice: inout Dice) {
    #expect(value.count == bytes.count)
    #expect(value.bytes == bytes)
    #expect(value.elementsEqual(bytes))
    value.expectSoundness()
    guard !bytes.isEmpty else { return }
    for _ in 0..<5 {
      let position = Int.random(in: 0..<bytes.count, using: &dice)
      #expect(value[position] == bytes[position])
      let (region, start) = value.region(location: position)
      #expect(start <= position && position < start + region.count)
      #expect(region.bytes == Array(bytes[start..<start + region.count]))
      var rest: [UInt8] = []
      value.object.visitBytes(from: position) {
        rest += $0
        return true
      }
      #expect(rest == Array(bytes[position...]))
    }
    if dice.hits(oneIn: 3) {
      let mapped = value.withUnsafeBytes { (start: UnsafePointer<UInt8>) in
        Array(UnsafeBufferPointer(start: start, count: bytes.count))
      }
      #expect(mapped == bytes)
    }
  }
}

extension Engine {
  /// Data of a million regions, on a worker's stack. A quadratic algorithm would take too long.
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
      // It computes for seconds, and for a minute on a busy machine. A quadratic algorithm would take hours.
      #expect(done.wait(timeout: .now() + .seconds(600)) == .success)
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

    /// All ways to read the bytes, of which number i is 7 * i.
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

  @Suite("DispatchData on many threads")
  struct DataConcurrencyTests {
    @Test("S115 copies that grow at once take different bytes of the same buffer")
    func growing() {
      for _ in 0..<Sanitizer.shrunk(200) {
        var shared = data(regions: "ab", "cd")
        shared.append("e")
        let start = shared
        let ended = onThreads(4) { thread in
          var mine = start
          for number in 0..<20 { mine.append(String(thread * 20 + number)) }
          let numbers = (0..<20).map { String(thread * 20 + $0) }
          #expect(mine.text == "abcde" + numbers.joined())
        }
        #expect(ended)
        #expect(start.text == "abcde")
      }
    }

    @Test("S118 threads that map at once get one copy")
    func mapping() {
      for _ in 0..<Sanitizer.shrunk(200) {
        let whole = data(regions: "abc", "def")
        let mapped = Shared<[ObjectIdentifier]>([])
        let ended = onThreads(4) { _ in
          let object = whole.object.map()!
          #expect(DispatchData(object: object).text == "abcdef")
          mapped.change { $0.append(ObjectIdentifier(object)) }
        }
        #expect(ended)
        #expect(Set(mapped.value).count == 1)
      }
    }

    @Test("Data that one thread has read and dropped, another changes in place")
    func handedOver() {
      let queue = DispatchQueue(label: "data.readers", attributes: .concurrent)
      let sum = Tally()
      let group = DispatchGroup()
      var grown = DispatchData.empty
      let rounds = Sanitizer.shrunk(20_000)
      for _ in 0..<rounds {
        grown.append(data("a"))
        let copy = grown.subdata(in: Swift.max(0, grown.count - 40)..<grown.count)
        queue.async(group: group) { sum.add(copy.count { $0 == UInt8(ascii: "a") }) }
      }
      #expect(empties(group))
      #expect(grown.count == rounds)
      #expect(sum.value == (0..<rounds).reduce(0) { $0 + min($1 + 1, 40) })
    }
  }
}
