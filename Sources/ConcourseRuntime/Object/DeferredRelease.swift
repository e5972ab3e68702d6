/// Releases the closures, targets and notifications of work items and queues without recursion. Releasing a chain of
/// a hundred thousand of them recursively would overflow the stack.
enum DeferredRelease {
  private final class Held {
    let block: (() -> Void)?
    let notifications: [DispatchWorkItem.Notification]
    let target: DispatchQueue?
    var next: Held?

    init(
      _ block: (() -> Void)?, _ notifications: [DispatchWorkItem.Notification], _ target: DispatchQueue?,
      next: Held?
    ) {
      self.block = block
      self.target = target
      self.notifications = notifications
      self.next = next
    }

    /// Releases the work of notifications that were never submitted.
    func drop() {
      for notification in notifications {
        _ = notification.node.takeWork()
        NodeMagazine.recycle(notification.node)
      }
    }
  }

  /// Releases the references now or, if a release is running on this thread, at the end of that release.
  @inline(__always)
  static func release(_ block: consuming (() -> Void)?, target: consuming DispatchQueue? = nil) {
    let thread = CurrentThread.state
    guard thread.pointee.releasing == 0 else { return hold(block, [], target) }
    // The outermost release needs no allocation: only nested releases call `hold`.
    thread.pointee.releasing = 1
    block = nil
    target = nil
    if thread.pointee.deferred_releases != nil { releaseHeld() }
    thread.pointee.releasing = 0
  }

  /// Releases notifications that were never submitted.
  @inline(never)
  static func release(_ notifications: [DispatchWorkItem.Notification]) {
    hold(nil, notifications, nil)
    let thread = CurrentThread.state
    guard thread.pointee.releasing == 0 else { return }
    thread.pointee.releasing = 1
    releaseHeld()
    thread.pointee.releasing = 0
  }

  @inline(never)
  private static func hold(
    _ block: (() -> Void)?, _ notifications: [DispatchWorkItem.Notification], _ target: DispatchQueue?
  ) {
    let thread = CurrentThread.state
    // SAFETY: only this file stores in `deferred_releases`, and it stores only retained `Held` objects.
    let next = thread.pointee.deferred_releases.map {
      Unmanaged<Held>.fromOpaque($0).takeRetainedValue()
    }
    thread.pointee.deferred_releases =
      Unmanaged.passRetained(Held(block, notifications, target, next: next)).toOpaque()
  }

  @inline(never)
  private static func releaseHeld() {
    let thread = CurrentThread.state
    while let raw = thread.pointee.deferred_releases {
      // SAFETY: as above.
      let held = Unmanaged<Held>.fromOpaque(raw).takeRetainedValue()
      thread.pointee.deferred_releases = held.next.map { Unmanaged.passRetained($0).toOpaque() }
      held.next = nil
      held.drop()
    }
  }
}
