import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// The layout that the C interface's data symbols rely on (CConcourseABI/include/concourse_abi.h).
@Suite("ObjectKind")
struct ObjectKindTests {
  @Test("the kind numbers of the C symbols")
  func numbers() {
    #expect(ObjectKind.mainQueueSymbol.rawValue == 11)
    #expect(ObjectKind.emptyDataSymbol.rawValue == 12)
    #expect(ObjectKind.attribute.rawValue == 13)
    #expect(ObjectKind.otherSymbol.rawValue == 14)
  }

  @Test("an object's kind is at offset 24, which is within the smallest symbol")
  func place() {
    let objects: [DispatchObject] = [
      DispatchQueue(label: "queue", attributes: .concurrent), DispatchGroup(), DispatchSemaphore(value: 0),
      DispatchQueue.main, DispatchQueue.global(), DataObject.empty,
    ]
    for object in objects {
      // SAFETY: within the object, which is alive.
      let byte = Unmanaged.passUnretained(object).toOpaque().load(fromByteOffset: 24, as: UInt8.self)
      #expect(byte == object.kind.rawValue)
    }
  }

  @Test("a label of C with at most 15 bytes is in the queue itself, a longer one is a copy")
  func shortLabels() throws {
    let other = try #require(strdup("other"))
    defer { free(other) }
    for length in 1...17 {
      let text = String(repeating: "l", count: length - 1) + "!"
      let queue = DispatchQueue.plain(cLabel: text, isConcurrent: false, target: nil, mayChangeTarget: true)
      let object = Unmanaged.passUnretained(queue).toOpaque()
      let label = queue.cLabel
      #expect(String(cString: label) == text)
      #expect(queue.label == text)
      #expect(queue.cLabel == label)
      #expect((object..<object + 88).contains(UnsafeMutableRawPointer(mutating: label)) == (length < 16))
      queue.setLabel(other)
      #expect(queue.cLabel == UnsafePointer(other))
      // The labels live as long as the queue.
      withExtendedLifetime(queue) {}
    }
  }

  @Test("a queue takes 96 bytes of malloc, with its header of eight")
  func size() {
    var queues: [DispatchQueue] = []
    // SAFETY: the function's type in C; Swift's module lacks it.
    let usableSize = unsafeBitCast(
      dlsym(nil, "malloc_usable_size"), to: (@convention(c) (UnsafeMutableRawPointer) -> Int).self)
    // malloc adds the rest of a free chunk that is too small for another chunk, as long as it has such chunks.
    var smallest = Int.max
    while smallest > 88 && queues.count < 100_000 {
      queues.append(DispatchQueue(label: "queue"))
      smallest = min(smallest, usableSize(Unmanaged.passUnretained(queues.last!).toOpaque()))
    }
    #expect(smallest == 88)
  }
}
