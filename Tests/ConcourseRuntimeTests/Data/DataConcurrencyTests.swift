import Testing

@testable import ConcourseRuntime

extension Engine {
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
          #expect(mine.text == "abcde" + (0..<20).map { String(thread * 20 + $0) }.joined())
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

    @Test("What one thread has read and dropped, another changes in place")
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
