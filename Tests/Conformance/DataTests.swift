// O. DispatchData.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

/// Data of one region with these bytes.
func data(_ bytes: [UInt8]) -> DispatchData {
  bytes.withUnsafeBytes { DispatchData(bytes: $0) }
}

/// Data of several regions, one for each list.
func data(regions: [[UInt8]]) -> DispatchData {
  regions.reduce(into: DispatchData.empty) { $0.append(data($1)) }
}

extension Conformance {
  @Suite("O. DispatchData")
  struct DataTests {
    private let pieces = data(regions: [[0, 1, 2], [3], [4, 5, 6, 7], [8, 9]])
    private let all = (0..<10).map { UInt8($0) }

    private func regions(_ data: DispatchData) -> [[UInt8]] {
      var regions = [[UInt8]]()
      data.enumerateBytes { bytes, _, _ in regions.append(Array(bytes)) }
      return regions
    }

    @Test("S115 bytes are copied in at creation")
    func copied() {
      var bytes: [UInt8] = [1, 2, 3]
      let made = bytes.withUnsafeBytes { DispatchData(bytes: $0) }
      bytes[0] = 9
      #expect(Array(made) == [1, 2, 3])
      #expect(made.count == 3)
      #expect(DispatchData.empty.count == 0)
      #expect(data([]).count == 0)
      #expect(Array(DispatchData.empty) == [])
    }

    @Test("S115 append leaves earlier copies unchanged")
    func valueSemantics() {
      var first = data([1, 2])
      let copy = first
      first.append(data([3]))
      let second = first
      first.append(data([4, 5]))
      #expect(Array(copy) == [1, 2])
      #expect(Array(second) == [1, 2, 3])
      #expect(Array(first) == [1, 2, 3, 4, 5])
    }

    @Test("S115 the ways to append")
    func appending() {
      var made = DispatchData.empty
      [UInt8](1...3).withUnsafeBytes { made.append($0) }
      [UInt16](repeating: 0x0505, count: 2).withUnsafeBufferPointer { made.append($0) }
      made.append(data([9]))
      made.append(.empty)
      made.append(UnsafeRawBufferPointer(start: nil, count: 0))
      #expect(Array(made) == [1, 2, 3, 5, 5, 5, 5, 9])
      var doubled = data([1, 2])
      doubled.append(doubled)
      #expect(Array(doubled) == [1, 2, 1, 2])
    }

    @Test("S115 subranges share memory, a full one and one of a single region are the same bytes")
    func sharing() {
      let address = { (data: DispatchData) -> UnsafeRawPointer? in
        var first: UnsafeRawPointer?
        data.enumerateBytes { bytes, _, stop in
          first = bytes.baseAddress.map { UnsafeRawPointer($0) }
          stop = true
        }
        return first
      }
      let whole = data((0..<100).map { UInt8($0) })
      let base = address(whole)
      #expect(base != nil)
      #expect(address(whole.subdata(in: 0..<100)) == base)
      #expect(address(whole.subdata(in: 10..<20)) == base.map { $0 + 10 })
      var longer = whole
      longer.append(data([1]))
      #expect(address(longer) == base)
      var sameAgain = whole
      sameAgain.append(.empty)
      #expect(address(sameAgain) == base)
      var fromEmpty = DispatchData.empty
      fromEmpty.append(whole)
      #expect(address(fromEmpty) == base)
    }

    @Test("S115 subranges, of one region and across several")
    func subranges() {
      for lower in 0...10 {
        for upper in lower...10 {
          let part = pieces.subdata(in: lower..<upper)
          #expect(Array(part) == Array(all[lower..<upper]))
          #expect(part.count == upper - lower)
        }
      }
      let nested = pieces.subdata(in: 2..<9).subdata(in: 1..<6).subdata(in: 1..<4)
      #expect(Array(nested) == [4, 5, 6])
    }

    @Test("S115 ranges are clamped and an exhausted range is empty")
    func clamping() {
      #expect(Array(pieces.subdata(in: 7..<1_000)) == [7, 8, 9])
      #expect(pieces.subdata(in: 10..<20).count == 0)
      #expect(pieces.subdata(in: 500..<501).count == 0)
      #expect(pieces.subdata(in: 0..<Int.max).count == 10)
    }

    @Test("S116 regions are visited in order, once each, with their offsets")
    func enumeration() {
      var seen = [(bytes: [UInt8], at: Int)]()
      pieces.enumerateBytes { bytes, index, _ in seen.append((Array(bytes), index)) }
      #expect(seen.map(\.bytes) == [[0, 1, 2], [3], [4, 5, 6, 7], [8, 9]])
      #expect(seen.map(\.at) == [0, 3, 4, 8])
      seen.removeAll()
      pieces.subdata(in: 2..<9).enumerateBytes { bytes, index, _ in seen.append((Array(bytes), index)) }
      #expect(seen.map(\.bytes) == [[2], [3], [4, 5, 6, 7], [8]])
      #expect(seen.map(\.at) == [0, 1, 2, 6])
    }

    @Test("S116 setting stop ends the visit, and the empty object is not visited")
    func enumerationStopped() {
      var seen = [[UInt8]]()
      pieces.enumerateBytes { bytes, _, stop in
        seen.append(Array(bytes))
        stop = seen.count == 2
      }
      #expect(seen == [[0, 1, 2], [3]])
      var visits = 0
      DispatchData.empty.enumerateBytes { _, _, _ in visits += 1 }
      #expect(visits == 0)
    }

    @Test("S117 the region query gives the region at a position and its start")
    func regionQuery() {
      let starts = [0, 0, 0, 3, 4, 4, 4, 4, 8, 8]
      for location in 0..<10 {
        let (region, offset) = pieces.region(location: location)
        #expect(offset == starts[location])
        #expect(Array(region).first == UInt8(starts[location]))
        #expect(Array(region).contains(UInt8(location)))
        #expect(regions(region).count == 1)
      }
      let (single, offset) = data([1, 2, 3]).region(location: 2)
      #expect(Array(single) == [1, 2, 3])
      #expect(offset == 0)
    }

    @Test("S117 at or past the end the region is empty and the start is the total size")
    func regionPastTheEnd() {
      for location in [10, 11, 1_000] {
        let (region, offset) = pieces.region(location: location)
        #expect(region.count == 0)
        #expect(offset == 10)
      }
      let (region, offset) = DispatchData.empty.region(location: 0)
      #expect(region.count == 0)
      #expect(offset == 0)
    }

    @Test(
      "S118 withUnsafeBytes shows one contiguous block, of any type, and passes results and errors through")
    func contiguous() throws {
      struct Failure: Error {}
      let whole = pieces.withUnsafeBytes { (bytes: UnsafePointer<UInt8>) in
        Array(UnsafeBufferPointer(start: bytes, count: 10))
      }
      #expect(whole == all)
      let words = data([1, 0, 0, 0, 2, 0, 0, 0]).withUnsafeBytes { (words: UnsafePointer<UInt32>) in
        [UInt32(littleEndian: words[0]), UInt32(littleEndian: words[1])]
      }
      #expect(words == [1, 2])
      #expect(throws: Failure.self) {
        try pieces.withUnsafeBytes { (_: UnsafePointer<UInt8>) in throw Failure() }
      }
    }

    #if CONCOURSE
      // Incumbent: traps.
      @Test("S118 withUnsafeBytes of empty data does not trap")
      func contiguousEmpty() {
        let ran = DispatchData.empty.withUnsafeBytes { (_: UnsafePointer<UInt8>) in true }
        #expect(ran)
      }
    #endif

    @Test("S119, trap 16: a custom deallocator runs once, on its queue, after the last subrange is gone")
    func deallocator() {
      let key = DispatchSpecificKey<Int>()
      let queue = DispatchQueue(label: "deallocator")
      queue.setSpecific(key: key, value: 1)
      let freed = DispatchSemaphore(value: 0)
      let count = Shared(0)
      let elsewhere = Shared(false)
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 8)
      for index in 0..<100 { buffer[index] = UInt8(index) }
      let address = UInt(bitPattern: buffer.baseAddress)
      var part = DispatchData.empty
      do {
        let whole = DispatchData(
          bytesNoCopy: UnsafeRawBufferPointer(buffer),
          deallocator: .custom(
            queue,
            {
              if DispatchQueue.getSpecific(key: key) != 1 { elsewhere.set(true) }
              count.increment()
              UnsafeMutableRawPointer(bitPattern: address)?.deallocate()
              freed.signal()
            }))
        whole.enumerateBytes { bytes, _, _ in
          #expect(UInt(bitPattern: bytes.baseAddress) == address)
        }
        var both = whole.subdata(in: 10..<20)
        both.append(whole.subdata(in: 50..<60))
        part = both.subdata(in: 5..<15)
      }
      #expect(othersHadTheirTurn())
      #expect(count.value == 0)
      #expect(Array(part) == [15, 16, 17, 18, 19, 50, 51, 52, 53, 54])
      part = .empty
      #expect(freed.comes())
      #expect(othersHadTheirTurn())
      #expect(count.value == 1)
      #expect(!elsewhere.value)
    }

    @Test("S119 without a queue a custom deallocator runs on a global queue, not on the releasing thread")
    func deallocatorWithoutQueue() {
      let freed = DispatchSemaphore(value: 0)
      let sameThread = Shared(false)
      let releasing = pthread_self()
      let bytes: StaticString = "static"
      do {
        let made = DispatchData(
          bytesNoCopy: UnsafeRawBufferPointer(start: bytes.utf8Start, count: bytes.utf8CodeUnitCount),
          deallocator: .custom(
            nil,
            {
              sameThread.set(pthread_equal(pthread_self(), releasing) != 0)
              freed.signal()
            }))
        #expect(String(decoding: made, as: UTF8.self) == "static")
      }
      #expect(freed.comes())
      #expect(!sameThread.value)
    }

    @Test("S119 for a zero-length buffer the custom deallocator runs right away, once")
    func deallocatorOfNothing() {
      let bytes: StaticString = "static"
      var starts = [UnsafeRawPointer?(bytes.utf8Start)]
      #if CONCOURSE
        // Incumbent: never calls the deallocator of a buffer without an address.
        starts.append(nil)
      #endif
      for start in starts {
        let freed = DispatchSemaphore(value: 0)
        let count = Shared(0)
        let made = DispatchData(
          bytesNoCopy: UnsafeRawBufferPointer(start: start, count: 0),
          deallocator: .custom(
            nil,
            {
              count.increment()
              freed.signal()
            }))
        #expect(freed.comes())
        #expect(made.count == 0)
        #expect(othersHadTheirTurn())
        #expect(count.value == 1)
      }
    }

    @Test("S119, trap 16: what the deallocator captured is released")
    func deallocatorReleased() {
      let gone = DispatchSemaphore(value: 0)
      for _ in 0..<20 {
        let bytes: StaticString = "static"
        let made = DispatchData(
          bytesNoCopy: UnsafeRawBufferPointer(start: bytes.utf8Start, count: bytes.utf8CodeUnitCount),
          deallocator: .custom(nil, { [witness = Witness(gone: gone)] in witness.remember() }))
        #expect(made.subdata(in: 1..<3).count == 2)
      }
      for _ in 0..<20 { #expect(gone.comes()) }
    }

    #if CONCOURSE
      // Incumbent: both crash, the default argument among them.
      @Test("S120 the free and unmap deallocators release the buffer themselves")
      func freeAndUnmap() throws {
        for _ in 0..<10 {
          let memory = try #require(malloc(4_096))
          memset(memory, 7, 4_096)
          let made = DispatchData(bytesNoCopy: UnsafeRawBufferPointer(start: memory, count: 4_096))
          #expect(made.count == 4_096)
          #expect(made[4_095] == 7)
        }
        let size = 8_192
        let anonymous = MAP_PRIVATE | MAP_ANONYMOUS
        let pages = try #require(mmap(nil, size, PROT_READ | PROT_WRITE, anonymous, -1, 0))
        try #require(pages != MAP_FAILED)
        memset(pages, 8, size)
        do {
          let made = DispatchData(
            bytesNoCopy: UnsafeRawBufferPointer(start: pages, count: size), deallocator: .unmap)
          #expect(made[size - 1] == 8)
        }
        // Unmapped at the latest when other queues had many turns: then msync finds no such pages.
        var mapped = true
        for _ in 0..<1_000 where mapped {
          #expect(othersHadTheirTurn())
          mapped = msync(pages, size, MS_ASYNC) == 0
        }
        #expect(!mapped)
      }
    #endif

    @Test("S121 copying to a typed buffer copies as many whole bytes as fit and returns the number")
    func copyToTyped() {
      var bytes = [UInt8](repeating: 0xff, count: 4)
      #expect(bytes.withUnsafeMutableBufferPointer { pieces.copyBytes(to: $0) } == 4)
      #expect(bytes == [0, 1, 2, 3])
      var many = [UInt8](repeating: 0xff, count: 12)
      #expect(many.withUnsafeMutableBufferPointer { pieces.copyBytes(to: $0) } == 10)
      #expect(many == all + [0xff, 0xff])
      #expect(many.withUnsafeMutableBufferPointer { pieces.copyBytes(to: $0, from: 3..<8) } == 5)
      #expect(many[0..<5] == [3, 4, 5, 6, 7])
      var words = [UInt32](repeating: .max, count: 2)
      #expect(words.withUnsafeMutableBufferPointer { pieces.copyBytes(to: $0) } == 8)
      #expect(words[0].littleEndian == 0x0302_0100)
      #expect(words[1].littleEndian == 0x0706_0504)
      #expect(words.withUnsafeMutableBufferPointer { DispatchData.empty.copyBytes(to: $0) } == 0)
    }

    @Test("S121 copying to a raw buffer")
    func copyToRaw() {
      var bytes = [UInt8](repeating: 0xff, count: 10)
      bytes.withUnsafeMutableBytes { pieces.copyBytes(to: $0, count: 5) }
      #expect(bytes == [0, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff, 0xff])
      bytes.withUnsafeMutableBytes { pieces.copyBytes(to: $0, from: 2..<9) }
      #expect(bytes == [2, 3, 4, 5, 6, 7, 8, 0xff, 0xff, 0xff])
    }

    @Test("S121 subscripts and indices; slices keep the base's indices")
    func collection() {
      #expect(pieces.startIndex == 0)
      #expect(pieces.endIndex == 10)
      #expect(pieces.index(after: 3) == 4)
      #expect(pieces.index(before: 3) == 2)
      #expect((0..<10).map { pieces[$0] } == all)
      let slice = pieces[3..<8]
      #expect(slice.startIndex == 3)
      #expect(slice.endIndex == 8)
      #expect(slice[3] == 3)
      #expect(Array(slice) == [3, 4, 5, 6, 7])
      #expect(Array(pieces.reversed()) == all.reversed())
      #expect(pieces.firstIndex(of: 6) == 6)
      #expect(pieces.last == 9)
      #expect(pieces.reduce(0) { $0 + Int($1) } == 45)
      var iterator = pieces.makeIterator()
      var seen = [UInt8]()
      while let byte = iterator.next() { seen.append(byte) }
      #expect(seen == all)
      #expect(iterator.next() == nil)
      #expect(Array(DispatchDataIterator(_data: pieces)) == all)
    }

    @Test("S115 many concatenations and subranges, in both directions, stay correct and are released")
    func manyPieces() {
      #if CONCOURSE
        let count = 20_000
      #else
        // Incumbent: each concatenation takes as long as there are pieces.
        let count = 1_500
      #endif
      var forwards = DispatchData.empty
      var backwards = DispatchData.empty
      for index in 0..<count {
        forwards.append(data([UInt8(truncatingIfNeeded: index)]))
        var longer = data([UInt8(truncatingIfNeeded: count - 1 - index)])
        longer.append(backwards)
        backwards = longer
      }
      let expected = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      #expect(forwards.count == count)
      #expect(Array(forwards) == expected)
      #expect(Array(backwards) == expected)
      #expect(forwards[count - 2] == expected[count - 2])
      #expect(Array(forwards.subdata(in: 999..<1_002)) == Array(expected[999..<1_002]))
    }
  }
}
