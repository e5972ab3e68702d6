// References that C programs hold. All that they hold of one object count as one of Swift's references: one more is an
// addition here, where Swift's own counting is a loop.
//
// So nobody may give back what the other side has counted: C would take away a reference that Swift code, or the library
// itself, relies on, which is told from the number here; Swift would take away what stands behind all of C's.

extension DispatchObject {
  /// The first reference for C, of an object that nobody else knows yet.
  @inlinable
  package final var firstReference: UnsafeMutableRawPointer {
    // ORDERING: relaxed; whoever passes the reference on publishes it with the object.
    references.store(1, ordering: .relaxed)
    return Unmanaged.passRetained(self).toOpaque()
  }

  /// One more reference for C. Matching C function: `dispatch_retain`.
  @inlinable @inline(__always)
  package static func retainForC(_ object: Unmanaged<DispatchObject>) {
    // ORDERING: relaxed; the caller has a reference, or somebody keeps the object for it meanwhile.
    let before = object._withUnsafeGuaranteedRef {
      $0.references.wrappingAdd(1, ordering: .relaxed).oldValue
    }
    if before <= 0 { ReferencesOfSwift.retain(object, before) }
  }

  /// One reference of C's less; the object may be gone then. Matching C function: `dispatch_release`.
  @inlinable @inline(__always)
  package static func releaseForC(_ object: Unmanaged<DispatchObject>) {
    let isShared = object._withUnsafeGuaranteedRef {
      // ORDERING: acquiring and releasing; what was done with each of the references comes before the end.
      // Without a sign the comparison is one with the instruction's own flags; zero is the first to be refused.
      return UInt32(
        bitPattern: $0.references.wrappingSubtract(1, ordering: .acquiringAndReleasing).oldValue) > 1
    }
    if !isShared { ReferencesOfSwift.release(object) }
  }

  /// Traps for a reference to an object that has been freed.
  package static func trapAsGone(_ function: StaticString) -> Never {
    Trap.clientBug(
      "\(function): the object has been freed; it was released once too often, or used afterwards")
  }
}

/// Swift's references behind those of C. Functions of their own, so that counting for C needs no stack.
@usableFromInline
enum ReferencesOfSwift {
  /// C has its first reference.
  @usableFromInline @inline(never)
  static func retain(_ object: Unmanaged<DispatchObject>, _ before: Int32) {
    object._withUnsafeGuaranteedRef {
      if $0.isGone { DispatchObject.trapAsGone("dispatch_retain") }
      if before < 0 { Trap.clientBug("dispatch_retain: \($0) has 2^31 references") }
    }
    _ = object.retain()
  }

  /// C has given its last reference back.
  @usableFromInline @inline(never)
  static func release(_ object: Unmanaged<DispatchObject>) {
    object._withUnsafeGuaranteedRef {
      if $0.isGone { DispatchObject.trapAsGone("dispatch_release") }
      // ORDERING: relaxed; below zero for certain, but for one who retains at this very moment: asked for here, and not
      // handed over, so that counting is one instruction.
      if $0.references.load(ordering: .relaxed) < 0 {
        Trap.clientBug(
          "dispatch_release: \($0) was released once too often: all references that the program had are gone, and what "
            + "the library has is not the program's")
      }
    }
    object.release()
  }
}
