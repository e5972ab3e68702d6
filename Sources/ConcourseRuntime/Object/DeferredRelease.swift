/// Releases what work items and queues hold without recursion: a chain of a hundred thousand of them
/// would otherwise need a stack as deep.
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

    /// Notifications that never came due still hold their work.
    func drop() {
      for notification in notifications {
        _ = notification.node.takeWork()
        NodeMagazine.recycle(notification.node)
      }
    }
  }

  /// Releases them, now or, inside another release on this thread, when that one has unwound.
  @inline(__always)
  static func release(_ block: consuming (() -> Void)?, target: consuming DispatchQueue? = nil) {
    let thread = CurrentThread.state
    guard thread.pointee.releasing == 0 else { return hold(block, [], target) }
    // The outermost release needs no memory: only what it lets go of may come to `hold`.
    thread.pointee.releasing = 1
    block = nil
    target = nil
    if thread.pointee.deferred_releases != nil { releaseHeld() }
    thread.pointee.releasing = 0
  }

  /// The same for notifications that never came due.
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
    // SAFETY: only this file stores in `deferred_releases`, and only retained `Held`s.
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
