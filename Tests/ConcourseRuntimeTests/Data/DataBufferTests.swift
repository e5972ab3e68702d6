import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

@Suite("Deallocators of DispatchData")
struct DataBufferTests {
  private let queue = DispatchQueue(label: "data.deallocators")
  private let onQueue = DispatchSpecificKey<Bool>()

  /// Data without a copy that records when and where its deallocator runs.
  private func watched(_ text: String, _ calls: Tally, _ called: DispatchSemaphore) -> DispatchData {
    queue.setSpecific(key: onQueue, value: true)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: text.utf8.count, alignment: 1)
    buffer.copyBytes(from: text.utf8)
    return DispatchData(
      bytesNoCopy: UnsafeRawBufferPointer(buffer),
      deallocator: .custom(queue) { [onQueue] in
        #expect(DispatchQueue.getSpecific(key: onQueue) == true)
        buffer.deallocate()
        calls.add()
        called.signal()
      })
  }

  @Test("S119 runs once on its queue after the last object that uses the buffer is gone")
  func custom() {
    let (calls, called) = (Tally(), DispatchSemaphore(value: 0))
    var whole: DispatchData? = watched("abcdef", calls, called)
    var part: DispatchData? = whole?.subdata(in: 2..<4)
    var joined: DispatchData? = data("x")
    joined?.append(whole!)
    var iterator = whole?.makeIterator()
    whole = nil
    queue.sync {}
    #expect(calls.value == 0)
    #expect(iterator?.next() == UInt8(ascii: "a"))
    iterator = nil
    joined = joined?.subdata(in: 0..<1)  // "x" alone
    queue.sync {}
    #expect(calls.value == 0)
    #expect(part?.text == "cd")
    part = nil
    #expect(comes(called))
    queue.sync {}
    #expect(calls.value == 1)
    #expect(joined?.text == "x")
  }

  @Test("S119 a region and a slice keep the buffer; a mapped copy does not")
  func keepers() {
    let (calls, called) = (Tally(), DispatchSemaphore(value: 0))
    var whole: DispatchData? = watched("abc", calls, called)
    whole?.append(data("def"))
    var region: DispatchData? = whole?.region(location: 1).data
    var slice = whole?[2..<5]
    let mapped = DispatchData(object: whole!.object.map()!)
    whole = nil
    region = nil
    queue.sync {}
    #expect(calls.value == 0)
    #expect(slice.map(Array.init) == Array("cde".utf8))
    slice = nil
    #expect(comes(called))
    #expect(region == nil && mapped.text == "abcdef")
  }

  @Test("S119 is asynchronous: a busy queue runs it later")
  func asynchronous() {
    let (calls, called) = (Tally(), DispatchSemaphore(value: 0))
    var whole: DispatchData? = watched("abc", calls, called)
    queue.suspend()
    #expect(whole?.count == 3)
    whole = nil
    #expect(calls.value == 0)
    queue.resume()
    #expect(comes(called))
  }

  @Test("S119 runs right away for a buffer of length 0, on the queue or on the default one")
  func zeroLength() {
    let called = DispatchSemaphore(value: 0)
    queue.setSpecific(key: onQueue, value: true)
    let first = DispatchData(
      bytesNoCopy: UnsafeRawBufferPointer(start: nil, count: 0),
      deallocator: .custom(queue) { [onQueue] in
        #expect(DispatchQueue.getSpecific(key: onQueue) == true)
        called.signal()
      })
    #expect(comes(called))
    let second = DispatchData(
      bytesNoCopy: UnsafeRawBufferPointer(start: nil, count: 0),
      deallocator: .custom(nil) {
        dispatchPrecondition(condition: .onQueue(.global()))
        called.signal()
      })
    #expect(comes(called))
    #expect(first.isEmpty && second.isEmpty)
  }

  @Test("S119 the queue lives as long as the buffer")
  func queueIsKept() {
    let called = DispatchSemaphore(value: 0)
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
    bytes[0] = 7
    weak var queue: DispatchQueue?
    var kept: DispatchData?
    do {
      let made = DispatchQueue(label: "data.kept")
      queue = made
      kept = DispatchData(
        bytesNoCopy: UnsafeRawBufferPointer(bytes), deallocator: .custom(made) { called.signal() })
    }
    #expect(queue != nil)
    #expect(kept?[0] == 7)
    kept = nil
    #expect(comes(called))
    bytes.deallocate()
  }

  @Test("S120 free gives the buffer back, and is the default")
  func free() {
    // Eight gigabytes in all: the size of the process shows if they stay.
    let before = Self.pagesOfProcess()
    for round in 0..<8192 {
      let buffer = UnsafeRawBufferPointer(start: malloc(1 << 20), count: 1 << 20)
      let shown =
        round % 2 == 0
        ? DispatchData(bytesNoCopy: buffer) : DispatchData(bytesNoCopy: buffer, deallocator: .free)
      #expect(shown.count == 1 << 20)
    }
    #expect(Self.pagesOfProcess() - before < (4 << 30) / Int(getpagesize()))
  }

  @Test("S120 unmap unmaps the buffer after the last object")
  func unmap() throws {
    // Its own file, to distinguish its mapping from others at the same address.
    let stream = try #require(tmpfile())
    defer { fclose(stream) }
    let file = fileno(stream)
    var status = stat()
    try #require(fstat(file, &status) == 0)
    let mapping = " \(status.st_ino) "
    let page = Int(getpagesize())
    try #require(ftruncate(file, off_t(3 * page)) == 0)
    try #require(pwrite(file, "abc", 3, off_t(page)) == 3)
    let memory = try #require(mmap(nil, 3 * page, PROT_READ, MAP_SHARED, file, 0))
    try #require(memory != MAP_FAILED)
    // The last page counts in full.
    let buffer = UnsafeRawBufferPointer(start: memory, count: 3 * page - 1)
    var whole: DispatchData? = DispatchData(bytesNoCopy: buffer, deallocator: .unmap)
    var part = whole?.subdata(in: page..<page + 3)
    whole = nil
    #expect(part?.text == "abc")
    #expect(Self.maps().contains(mapping))
    part = nil
    #expect(!Self.maps().contains(mapping))
    #expect(whole == nil)
  }

  private static func maps() -> String { read("/proc/self/maps") }

  private static func pagesOfProcess() -> Int { Int(read("/proc/self/statm").split(separator: " ")[0])! }

  private static func read(_ path: String) -> String {
    let file = open(path, O_RDONLY)
    defer { close(file) }
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(file, &buffer, buffer.count)
      if count <= 0 { return String(decoding: text, as: UTF8.self) }
      text += buffer[..<count]
    }
  }
}
