import Concourse
import Testing

// This file belongs to two test targets: the other one compiles the manager itself, and runs under the sanitizers.
#if canImport(guide)
  @testable import guide
#endif

/// The tutorial's photo manager under load.
@Suite("PhotoManager", .timeLimit(.minutes(10))) struct PhotoManagerTests {
  @Test func thereIsOneForAll() {
    #expect(PhotoManager.shared === PhotoManager.shared)
  }

  @Test func nothingIsLostUnderLoad() {
    let (writers, photosEach) = (8, 200)
    let listeners = DispatchQueue(label: "org.concourse.guide.listeners")
    let manager = PhotoManager(listeners: listeners)
    let told = Counts()
    // A serial queue: the counts are told one at a time, and in order.
    manager.whenAdded { count in told.append(count) }
    DispatchQueue.concurrentPerform(iterations: writers * 2) { worker in
      var before = 0
      for number in 0..<photosEach {
        if worker < writers { manager.add("\(worker)/\(number)") }
        let now = manager.photos
        // Photos are added and never go, and a writer finds its own.
        #expect(now.count >= before)
        if worker < writers { #expect(now.contains("\(worker)/\(number)")) }
        before = now.count
      }
    }
    let photos = manager.photos
    #expect(photos.count == writers * photosEach)
    for worker in 0..<writers {
      let own = photos.filter { $0.hasPrefix("\(worker)/") }
      #expect(own == (0..<photosEach).map { "\(worker)/\($0)" })
    }
    listeners.sync {}
    #expect(told.all == Array(1...writers * photosEach))
  }

  @Test func whatWasReadIsACopy() {
    let manager = PhotoManager(listeners: DispatchQueue(label: "org.concourse.guide.listeners"))
    manager.add("ferry")
    let before = manager.photos
    manager.add("harbour")
    #expect(before == ["ferry"])
    #expect(manager.photos == ["ferry", "harbour"])
  }
}

/// Numbers that items of one serial queue collect.
private final class Counts: @unchecked Sendable {  // SAFETY: OWNED BY the queue's items, then by the test.
  private(set) var all: [Int] = []
  func append(_ count: Int) { all.append(count) }
}
