internal import CConcourse

/// Checks and cleans up when a thread exits.
///
/// An item that ends its thread (`pthread_exit`, `pthread_cancel`) never returns: its queue stays owned, its group
/// never empties, and threads that wait for it hang. The same goes for an item that `longjmp` or a C++ exception
/// leaves, which shows only here. The frames were on a stack that has been unwound by now, so the innermost queue is
/// kept beside the frame.
enum ThreadExit {
  fileprivate static func run() {
    let thread = CurrentThread.state
    if thread.pointee.frame != nil {
      // SAFETY: the thread that runs an item has a reference to its queue, or a place that keeps it, and releasing the
      // last reference traps while the item has not returned.
      let queue = Unmanaged<DispatchQueue>.fromOpaque(thread.pointee.queue!).takeUnretainedValue()
      Trap.clientBug(
        404,
        "an item of queue \"\(queue.label)\" never returned: it ended its thread (pthread_exit, pthread_cancel), or "
          + "longjmp or an exception left it; what it holds is never given back")
    }
    if thread.pointee.once_depth > 0 {
      Trap.clientBug(
        405,
        "a body that runs once never returned: it ended its thread (pthread_exit, pthread_cancel), or longjmp or an "
          + "exception left it; threads that wait for it would wait for ever")
    }
    if thread.pointee.worker != nil || thread.pointee.delivering != nil {
      Trap.clientBug(406, "a thread of the pool was ended from outside (pthread_cancel)")
    }
    NodeMagazine.emptyAtExit()
    Recording.threadEnds()
  }
}

/// Called at the exit of a thread that `CurrentThread.watchExit` has armed: every thread that has learnt its id.
@c(concourse_thread_exits)
func threadExits() { ThreadExit.run() }
