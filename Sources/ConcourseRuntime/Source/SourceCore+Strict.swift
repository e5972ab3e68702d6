// What only the C interface asks of sources: that cancelling is waited for, or that it is a duty.

/// A thread that waits for the end of a source; lives on its stack.
struct SourceEnder: ~Copyable {
  let event = ThreadEvent()
  var next: UnsafeMutablePointer<SourceEnder>?
}

extension SourceCore {
  /// As `setCancelHandler`, for good: see `isStrict`.
  func setMandatoryCancelHandler(_ handler: SourceHandler) {
    var other: SourceHandler? = handler
    lock.withLock {
      if state.isActive {
        Trap.clientBug("a mandatory cancel handler was set on \(description), which is active")
      }
      isStrict = true
      swap(&cancelHandler, &other)
    }
    withExtendedLifetime(other) {}
  }

  /// Call under the lock.
  func requireChangeable(_ part: StaticString, _ state: SourceState) {
    if isStrict && state.isActive {
      Trap.clientBug(
        "\(part) was set on \(description), which has a mandatory cancel handler and is active: it cannot change"
      )
    }
  }

  func setFloor(_ level: QoSLevel, _ function: StaticString) {
    lock.withLock {
      if state.isActive {
        Trap.clientBug("\(function) on \(description), which is active; call it before activate()")
      }
      floor = level
    }
  }

  /// Cancels, and returns when no handler runs any more and the kernel has let go.
  func cancelAndWait() {
    lock.lock()
    requireWaitable()
    let isActive = state.isActive
    lock.unlock()
    cancel()
    // What was never activated ends here as well, and may then be released.
    if !isActive { activate() }
    lock.lock()
    requireWaitable()
    if caller == 0 && state.isOver { return lock.unlock() }
    var ender = SourceEnder(next: enders)
    withUnsafeMutablePointer(to: &ender) { ender in
      enders = ender
      lock.unlock()
      ender.pointee.event.wait()
    }
  }

  /// Call under the lock.
  private func requireWaitable() {
    if cancelHandler != nil {
      Trap.clientBug(
        "cancelling and waiting for \(description), which has a cancel handler to tell of its end")
    }
    if state.suspensions > 0 {
      Trap.clientBug("cancelling and waiting for \(description), which is suspended")
    }
    if caller == CurrentThread.id {
      Trap.clientBug("cancelling and waiting for \(description) in its own handler, whose end is waited for")
    }
  }

  /// A handler has returned. Call under the lock.
  func endCall() {
    caller = 0
    if enders != nil { releaseEnders() }
  }

  /// Call under the lock.
  func releaseEnders() {
    guard caller == 0 && state.isOver else { return }
    var link = enders
    enders = nil
    while let ender = link {
      // Read first: the waiter may be gone as soon as it is told.
      link = ender.pointee.next
      ender.pointee.event.signal()
    }
  }
}
