import Glibc
import Testing

@testable import ConcourseRuntime

/// The reference to a concurrent queue that its asynchronous items share while they are on their way.
@Suite("The reference that items share")
struct ItemReferenceTests {
  /// How a queue loses its last place.
  enum End: CaseIterable {
    case item, reader, limit, heldBack
  }

  private final class Count: Sendable {
    let ended = DispatchSemaphore(value: 0)
  }

  @Test("fifty items on their way need as many references as one, and none when they have run")
  func oneReference() {
    let target = DispatchQueue(label: "target")
    let queue = DispatchQueue(label: "queue", attributes: .concurrent, target: target)
    let group = DispatchGroup()
    target.suspend()
    let before = _getRetainCount(queue)
    queue.async(group: group) {}
    let withOne = _getRetainCount(queue)
    for _ in 1..<50 { queue.async(group: group) {} }
    #expect(queue.state.snapshot.readers == 50 && queue.state.snapshot.isKept)
    let withFifty = _getRetainCount(queue)
    #expect(withOne == before + 1 && withFifty == withOne)
    target.resume()
    #expect(empties(group))
    queue.sync(flags: .barrier) {}
    #expect(!queue.state.snapshot.isKept)
  }

  @Test(
    "S5 a queue without other references lives as long as its items, and no longer", arguments: End.allCases)
  func end(_ way: End) {
    let (count, ran) = (Count(), Tally())
    let rounds = Sanitizer.shrunk(500)
    for _ in 0..<rounds {
      let queue = DispatchQueue(label: "queue", attributes: .concurrent)
      queue.context = Unmanaged.passUnretained(count).toOpaque()
      queue.setFinalizer { Unmanaged<Count>.fromOpaque($0!).takeUnretainedValue().ended.signal() }
      if way == .limit { queue.setWidth(2) }
      for _ in 0..<4 { queue.async { ran.add() } }
      switch way {
      case .item, .limit: break
      case .reader: queue.sync { queue.async { ran.add() } }
      case .heldBack:
        queue.suspend()
        queue.async { ran.add() }
        queue.resume()
      }
    }
    for _ in 0..<rounds { #expect(comes(count.ended)) }
    #expect(ran.value == rounds * (way == .reader || way == .heldBack ? 5 : 4))
  }

  @Test(
    "with many processors each item has a reference of its own, and does not keep readers from being counted apart"
  )
  func apart() async {
    await #expect(processExitsWith: .success) {
      setenv("CONCOURSE_TOPOLOGY", "2x4", 1)
      let target = DispatchQueue(label: "target")
      weak var last: DispatchQueue?
      let group = DispatchGroup()
      do {
        let queue = DispatchQueue(label: "queue", attributes: .concurrent, target: target)
        last = queue
        target.suspend()
        queue.async(group: group) {}
        for _ in 0..<100_000 where !queue.state.snapshot.isApart { queue.readersCollided() }
        #expect(queue.state.snapshot.isApart)
        let before = _getRetainCount(queue)
        for _ in 0..<10 { queue.async(group: group) {} }
        let withTen = _getRetainCount(queue)
        #expect(withTen == before + 10 && !queue.state.snapshot.isKept)
      }
      target.resume()
      #expect(empties(group))
      // What follows in the target comes after the last item has given its place back.
      target.sync {}
      #expect(last == nil)
    }
  }
}
