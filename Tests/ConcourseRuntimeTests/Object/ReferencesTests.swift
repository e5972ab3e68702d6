import Glibc
import Testing

@testable import ConcourseRuntime

/// The combined counting of C's references and Swift's.
@Suite("C references")
struct ReferencesTests {
  /// Counts its deinit.
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

  @Test("an object made by C is destroyed with C's last reference")
  func made() {
    let ends = Shared(0)
    let reference = Witness(ends).firstReference
    for _ in 0..<3 { DispatchObject.retainForC(object(reference)) }
    for _ in 0..<3 { DispatchObject.releaseForC(object(reference)) }
    #expect(ends.value == 0)
    DispatchObject.releaseForC(object(reference))
    #expect(ends.value == 1)
  }

  @Test("an object that Swift still holds outlives C's references, and C may retain it again")
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

  @Test("many threads retain and release; the object is destroyed once, at the end")
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

  @Test("threads repeatedly take and return C's first reference")
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
}
