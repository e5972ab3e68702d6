import ConcourseRuntime
import Testing

@Suite("DispatchOnce", .serialized)
struct DispatchOnceTests {
  final class Counter: @unchecked Sendable {
    // SAFETY: written inside the once body only, read after `perform` has returned.
    var value = 0
  }

  @Test("S74 the body runs once, and all callers return after it has completed")
  func once() {
    for _ in 0..<200 {
      let once = DispatchOnce()
      let counter = Counter()
      DispatchQueue.concurrentPerform(iterations: 8) { _ in
        once.perform { counter.value += 1 }
        precondition(counter.value == 1)
      }
      #expect(counter.value == 1)
    }
  }

  @Test("S74 callers that come while the body runs wait for it")
  func waiters() {
    let once = DispatchOnce()
    let counter = Counter()
    let begun = DispatchSemaphore(value: 0)
    let go = DispatchSemaphore(value: 0)
    let group = DispatchGroup()
    DispatchQueue.global().async(group: group) {
      once.perform {
        begun.signal()
        go.wait()
        counter.value = 42
      }
    }
    begun.wait()
    for _ in 0..<4 {
      DispatchQueue.global().async(group: group) {
        once.perform { counter.value = -1 }
        precondition(counter.value == 42)
      }
    }
    go.signal()
    #expect(empties(group))
    #expect(counter.value == 42)
  }

  @Test("S75 a nested call from the body traps and says so")
  func recursion() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let once = DispatchOnce()
      once.perform { once.perform {} }
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("a once body called its own once again: it would wait for itself"))
  }
}
