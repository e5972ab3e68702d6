/// Releases the closures, targets and notifications of work items, groups and queues without recursion. Releasing a
/// chain of a hundred thousand of them recursively would overflow the stack.
enum DeferredRelease {
  /// What is released. It is moved, never copied: a copy would be the last reference, released too late.
  enum Cargo: ~Copyable {
    case body(ItemBody)
    /// Notifications that are never submitted.
    case notifications(NodeChain)
    case queue(Unmanaged<DispatchQueue>)

    @inline(__always)
    consuming func drop() {
      switch consume self {
      case .body(let body): _ = consume body
      case .notifications(var chain): chain.dropAll()
      case .queue(let queue): queue.release()
      }
    }
  }

  private final class Held {
    var cargo: Cargo?
    var next: Held?

    init(_ cargo: consuming Cargo, next: Held?) {
      self.cargo = consume cargo
      self.next = next
    }
  }

  /// Releases the cargo now or, if a release is running on this thread, at the end of that release.
  @inline(__always)
  static func release(_ cargo: consuming Cargo) {
    let thread = CurrentThread.state
    guard thread.pointee.releasing == 0 else { return hold(cargo) }
    // The outermost release needs no allocation: only nested releases call `hold`.
    thread.pointee.releasing = 1
    cargo.drop()
    if thread.pointee.deferred_releases != nil { releaseHeld() }
    thread.pointee.releasing = 0
  }

  @inline(never)
  private static func hold(_ cargo: consuming Cargo) {
    let thread = CurrentThread.state
    // SAFETY: only this file stores in `deferred_releases`, and it stores only retained `Held` objects.
    let next = thread.pointee.deferred_releases.map {
      Unmanaged<Held>.fromOpaque($0).takeRetainedValue()
    }
    thread.pointee.deferred_releases = Unmanaged.passRetained(Held(cargo, next: next)).toOpaque()
  }

  @inline(never)
  private static func releaseHeld() {
    let thread = CurrentThread.state
    while let raw = thread.pointee.deferred_releases {
      // SAFETY: as above.
      let held = Unmanaged<Held>.fromOpaque(raw).takeRetainedValue()
      thread.pointee.deferred_releases = held.next.map { Unmanaged.passRetained($0).toOpaque() }
      held.next = nil
      held.cargo.take()!.drop()
    }
  }
}
