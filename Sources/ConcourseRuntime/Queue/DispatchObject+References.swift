// References that C programs hold. All that they hold of one object count as one of Swift's references: one more is an
// addition here, where Swift's own counting is a loop.

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
    if before &- 1 >= 1 << 31 { ReferencesOfSwift.retain(object, before) }
  }

  /// One reference of C's less; the object may be gone then. Matching C function: `dispatch_release`.
  @inlinable @inline(__always)
  package static func releaseForC(_ object: Unmanaged<DispatchObject>) {
    let isShared = object._withUnsafeGuaranteedRef {
      // ORDERING: relaxed; the caller's own is among them, or else there are none.
      if $0.references.load(ordering: .relaxed) == 0 { return false }
      // ORDERING: acquiring and releasing; what was done with each of the references comes before the end.
      return $0.references.wrappingSubtract(1, ordering: .acquiringAndReleasing).oldValue > 1
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
  static func retain(_ object: Unmanaged<DispatchObject>, _ before: UInt32) {
    object._withUnsafeGuaranteedRef {
      if $0.isGone { DispatchObject.trapAsGone("dispatch_retain") }
      if before > 0 { Trap.clientBug("dispatch_retain: \($0) has 2^31 references") }
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
