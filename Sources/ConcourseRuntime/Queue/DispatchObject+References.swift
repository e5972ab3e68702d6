// References that C programs hold. All that they hold of one object count as one of Swift's references: one more is an
// addition here, where Swift's own counting is a loop.
//
// A reference that Swift code has counted may be given back by C, in any order and at any time: at zero and below, each
// of C's counts as one of Swift's. The other way there is none: one of C's is given back here, never by Swift's counting,
// which would take away what stands behind all the others.

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
      $0.references.wrappingSubtract(1, ordering: .acquiringAndReleasing).oldValue > 1
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
  /// C has its first reference, or had given back more than it had taken.
  @usableFromInline @inline(never)
  static func retain(_ object: Unmanaged<DispatchObject>, _ before: Int32) {
    object._withUnsafeGuaranteedRef {
      if $0.isGone { DispatchObject.trapAsGone("dispatch_retain") }
      // So far below zero no program comes by giving back.
      if before < -1 << 30 { Trap.clientBug("dispatch_retain: \($0) has 2^31 references") }
    }
    _ = object.retain()
  }

  /// C has given its last reference back, or one that Swift code had handed over to it.
  @usableFromInline @inline(never)
  static func release(_ object: Unmanaged<DispatchObject>) {
    object._withUnsafeGuaranteedRef { if $0.isGone { DispatchObject.trapAsGone("dispatch_release") } }
    object.release()
  }
}
