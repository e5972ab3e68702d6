internal import CConcourse
internal import Glibc

/// The kernel's event queue, reduced to what the loop needs: descriptors with tokens, and waiting.
///
/// Tokens, never pointers, travel through the kernel, so that an event for something that is gone is
/// recognised and dropped.
struct Poller: ~Copyable {
  private let descriptor: Int32

  /// nil when the system has no descriptor left.
  init?() {
    descriptor = concourse_epoll_create()
    guard descriptor >= 0 else { return nil }
  }

  /// Watches a descriptor of ours for reading.
  /// - Returns: whether the kernel agreed.
  func watch(_ descriptor: Int32, token: UInt64) -> Bool {
    concourse_epoll_watch(self.descriptor, descriptor, token) == 0
  }

  /// Waits for events and passes their tokens to `body`.
  func wait(_ body: (UInt64) -> Void) {
    withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 16) { tokens in
      let count = concourse_epoll_wait(descriptor, tokens.baseAddress!, 16)
      if count < 0 {
        // EINTR: the caller comes again. Anything else means that our own descriptor is broken.
        if count != -EINTR { Trap.runtimeBug("epoll_wait failed with errno \(-count)") }
        return
      }
      for token in tokens.prefix(Int(count)) { body(token) }
    }
  }
}
