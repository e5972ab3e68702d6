// What only the C interface offers: synchronous cancellation and mandatory cancel handlers.

/// A thread in `cancelAndWait`. Lives on that thread's stack.
struct CancelWaiter: ~Copyable {
  let event = ThreadEvent()
  var next: UnsafeMutablePointer<CancelWaiter>?
}

extension SourceCore {
  /// Sets the cancel handler and requires cancellation: see `Settings`.
  func setMandatoryCancelHandler(_ handler: SourceHandler) {
    var other: SourceHandler? = handler
    lock.withLock {
      if state.isActive {
        Trap.clientBug(517, "a mandatory cancel handler was set on \(description), which is active")
      }
      settings.hasMandatoryCancel = true
      swap(&handlers.cancel, &other)
    }
    withExtendedLifetime(other) {}
  }

  /// Call under the lock.
  func requireChangeable(_ part: StaticString, _ state: SourceState) {
    if settings.hasMandatoryCancel && state.isActive {
      Trap.clientBug(
        518,
        "\(part) was set on \(description), which has a mandatory cancel handler and is active: it cannot change"
      )
    }
  }

  func setFloor(_ level: QoSLevel, _ function: StaticString) {
    lock.withLock {
      if state.isActive {
        Trap.clientBug(519, "\(function) on \(description), which is active; call it before activate()")
      }
      settings.floor = level
    }
  }

  /// Cancels the source, and returns when no handler is running and the backend is removed.
  func cancelAndWait() {
    lock.lock()
    requireWaitable()
    let isActive = state.isActive
    lock.unlock()
    cancel()
    // Activation ends a source that was never active, so that it may be released.
    if !isActive { activate() }
    lock.lock()
    requireWaitable()
    if handlerThread == 0 && state.isOver { return lock.unlock() }
    var waiter = CancelWaiter(next: cancelWaiters)
    withUnsafeMutablePointer(to: &waiter) { waiter in
      cancelWaiters = waiter
      lock.unlock()
      waiter.pointee.event.wait(for: .sourceCancellation, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  /// Call under the lock.
  private func requireWaitable() {
    if handlers.cancel != nil {
      Trap.clientBug(
        520,
        "cancelling and waiting for \(description), which has a cancel handler to report its end")
    }
    if state.suspensions > 0 {
      Trap.clientBug(521, "cancelling and waiting for \(description), which is suspended")
    }
    if handlerThread == CurrentThread.id {
      Trap.clientBug(
        522, "cancelling and waiting for \(description) in its own handler, which it would wait for")
    }
  }

  /// Notes that a handler has returned. Call under the lock.
  func endCall() {
    handlerThread = 0
    if cancelWaiters != nil { signalCancelWaiters() }
  }

  /// Call under the lock.
  func signalCancelWaiters() {
    guard handlerThread == 0 && state.isOver else { return }
    var link = cancelWaiters
    cancelWaiters = nil
    while let waiter = link {
      // Read `next` first: the waiter may return, and free its stack frame, as soon as it is signalled.
      link = waiter.pointee.next
      waiter.pointee.event.signal()
    }
  }
}
