import Testing

@testable import ConcourseRuntime

/// Random data beside the arrays that it must equal.
@Suite("DispatchData against arrays")
struct DataModelTests {
  @Test("Joining and cutting at random", arguments: 0..<8)
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
    // What came later has changed nothing of what was there before.
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
