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
  static func release(
    _ block: consuming (() -> Void)?, _ notifications: [DispatchWorkItem.Notification] = [],
    target: consuming DispatchQueue? = nil
  ) {
    let thread = CurrentThread.state
    // SAFETY: only this function stores in `deferred_releases`, and only retained `Held`s.
    let next = thread.pointee.deferred_releases.map {
      Unmanaged<Held>.fromOpaque($0).takeRetainedValue()
    }
    thread.pointee.deferred_releases =
      Unmanaged.passRetained(Held(block, notifications, target, next: next)).toOpaque()
    block = nil
    target = nil
    guard thread.pointee.releasing == 0 else { return }
    thread.pointee.releasing = 1
    while let raw = thread.pointee.deferred_releases {
      // SAFETY: as above.
      let held = Unmanaged<Held>.fromOpaque(raw).takeRetainedValue()
      thread.pointee.deferred_releases = held.next.map { Unmanaged.passRetained($0).toOpaque() }
      held.next = nil
      held.drop()
    }
    thread.pointee.releasing = 0
  }
}
