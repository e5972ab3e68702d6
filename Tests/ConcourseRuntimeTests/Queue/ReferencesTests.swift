import Glibc
import Testing

@testable import ConcourseRuntime

/// How C's references and Swift's count together.
@Suite("References of C")
struct ReferencesTests {
  /// Says when it goes.
  // SAFETY: what it adds is constant.
  private final class Witness: DispatchGroup, @unchecked Sendable {
    private let ends: Shared<Int>

    init(_ ends: Shared<Int>) {
      self.ends = ends
      super.init()
    }

    deinit { ends.change { $0 += 1 } }
  }

  private func object(_ reference: UnsafeMutableRawPointer) -> Unmanaged<DispatchObject> {
    // SAFETY: only the tests' own references, while they count.
    .fromOpaque(reference)
  }

  @Test("an object that C has made goes with C's last reference")
  func made() {
    let ends = Shared(0)
    let reference = Witness(ends).firstReference
    for _ in 0..<3 { DispatchObject.retainForC(object(reference)) }
    for _ in 0..<3 { DispatchObject.releaseForC(object(reference)) }
    #expect(ends.value == 0)
    DispatchObject.releaseForC(object(reference))
    #expect(ends.value == 1)
  }

  @Test("what Swift still holds outlives C's references, and C may have new ones")
  func shared() {
    let ends = Shared(0)
    var held: Witness? = Witness(ends)
    let reference = held!.firstReference
    for _ in 0..<10 {
      DispatchObject.releaseForC(object(reference))
      #expect(ends.value == 0)
      DispatchObject.retainForC(object(reference))
    }
    held = nil
    #expect(ends.value == 0)
    DispatchObject.releaseForC(object(reference))
    #expect(ends.value == 1)
  }

  @Test("a reference that Swift hands over is C's to give back")
  func handedOver() {
    let ends = Shared(0)
    let given = Unmanaged.passRetained(Witness(ends)).toOpaque()
    DispatchObject.releaseForC(object(given))
    #expect(ends.value == 1)
  }

  @Test("many threads retain and release; the object goes once, at the end")
  func contended() {
    let ends = Shared(0)
    let reference = Shared(Witness(ends).firstReference)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      let mine = object(reference.value)
      for step in 0..<5000 {
        DispatchObject.retainForC(mine)
        if step.isMultiple(of: 3) { DispatchObject.retainForC(mine) }
        DispatchObject.releaseForC(mine)
        if step.isMultiple(of: 3) { DispatchObject.releaseForC(mine) }
      }
    }
    #expect(ends.value == 0)
    DispatchObject.releaseForC(object(reference.value))
    #expect(ends.value == 1)
  }

  @Test("threads that come with no reference of C's take and give back the first one, over and over")
  func firstAndLast() {
    let ends = Shared(0)
    var held: Witness? = Witness(ends)
    let reference = Shared(Unmanaged.passUnretained(held!).toOpaque())
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      for _ in 0..<5000 {
        DispatchObject.retainForC(object(reference.value))
        DispatchObject.releaseForC(object(reference.value))
      }
    }
    #expect(ends.value == 0)
    held = nil
    #expect(ends.value == 1)
  }

  @Test("C's last reference and one that Swift has handed over are given back at the same time")
  func handedOverMeanwhile() {
    let ends = Shared(0)
    var held: Witness? = Witness(ends)
    let reference = Shared(Unmanaged.passUnretained(held!).toOpaque())
    let rounds = 40_000
    // The threads wait for each other, so that they often meet.
    let arrived = Atomic<Int>(0)
    for _ in 0..<rounds { _ = Unmanaged.passRetained(held!) }
    let done = onThreads(2) { side in
      for round in 1...rounds {
        if side == 0 { DispatchObject.retainForC(object(reference.value)) }
        // ORDERING: both, with each other: the two are at the same round.
        arrived.wrappingAdd(1, ordering: .acquiringAndReleasing)
        while arrived.load(ordering: .acquiring) < 2 * round { sched_yield() }
        DispatchObject.releaseForC(object(reference.value))
      }
    }
    #expect(done)
    #expect(ends.value == 0)
    DispatchObject.retainForC(object(reference.value))
    held = nil
    #expect(ends.value == 0)
    DispatchObject.releaseForC(object(reference.value))
    #expect(ends.value == 1)
  }
}
