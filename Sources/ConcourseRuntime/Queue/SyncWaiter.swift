/// A thread that waits in a queue's list for its turn. Lives on that thread's stack.
package struct SyncWaiter: ~Copyable {
  let event = ThreadEvent()
  /// The waiting thread's id, so that ownership can be passed to it.
  let thread: UInt32
  /// Whether it needs the queue exclusively.
  let exclusive: Bool
  /// The queue it was submitted to and the frame it was submitted from, for a body run elsewhere.
  let queue: Unmanaged<DispatchQueue>
  let frame: UnsafeMutablePointer<Frame>?
  let level: QoSLevel
  /// If set, the thread that drains the queue may run the body instead of handing over the queue.
  let body: (() -> Void)?
  /// Whether that thread has run the body. The waiter then only returns.
  let bodyHasRun = Atomic<Bool>(false)

  /// Sleeps until the waiter is signalled, known to the search for deadlocks.
  static func sleep(_ wait: BlockedThread.Wait) {
    BlockedThreads.during(wait) { wait.waiter!.pointee.event.sleepAsWorker(until: $0) }
  }

  /// Runs a waiter's body on this thread, in a frame whose parent is the waiter's.
  ///
  /// Never inlined: the body's temporary reference must be gone before the waiter is signalled, since the
  /// closure lives on the waiter's stack.
  @inline(never)
  static func runBody(of waiter: UnsafeMutablePointer<SyncWaiter>) {
    PlainMemory.reads(beside: waiter.pointee.bodyHasRun)
    let frame = Frame(
      queue: waiter.pointee.queue, parent: waiter.pointee.frame,
      exclusive: waiter.pointee.exclusive, level: waiter.pointee.level)
    Frame.run(frame) { waiter.pointee.body!() }
  }
}
