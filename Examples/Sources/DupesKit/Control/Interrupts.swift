import Glibc
import Synchronization

/// Turns Ctrl-C (SIGINT) and SIGTERM into a call of `cancel()`.
///
/// A signal handler may do next to nothing: no allocation, no lock, no queue. Ours writes one byte to a
/// pipe, and a small thread that reads the pipe does the rest, where it may do what it likes.
///
/// Blocking the signals everywhere and waiting for them with `sigwait` would need no handler, but it asks
/// every thread of the process to keep the mask it was born with. The toolchain's `dispatchMain()` does not:
/// it lets the main thread sleep with all signals open, and there Ctrl-C would end the process.
final class Interrupts: Sendable {
  private let cancellation: Cancellation
  private let received = Atomic<Int32>(0)

  /// Catches the signals from now on.
  init(cancelling cancellation: Cancellation) {
    self.cancellation = cancellation
    let signals = [SIGINT, SIGTERM].filter { !Interrupts.isIgnored($0) }
    // No pipe or no thread to be had: then the signals had better do what they always do.
    guard !signals.isEmpty, let pipe = Interrupts.makePipe(), startThread(reading: pipe.read) else { return }
    // ORDERING: releasing; pairs with the relaxed load in the handler, which is installed only after this.
    handlerPipe.store(pipe.write, ordering: .releasing)
    for signal in signals {
      var action = sigaction()
      action.__sigaction_handler.sa_handler = { noteSignal($0) }
      action.sa_flags = SA_RESTART
      sigaction(signal, &action, nil)
    }
  }

  /// The signal that stopped the search, or nil.
  var signal: Int32? {
    // ORDERING: acquiring; pairs with the releasing store in `wait`.
    let signal = received.load(ordering: .acquiring)
    return signal == 0 ? nil : signal
  }

  private func wait(reading pipe: Int32) {
    while true {
      var number: UInt8 = 0
      let count = read(pipe, &number, 1)
      if count < 0 && errno == EINTR { continue }
      guard count == 1 else { return }
      // The first asks for an orderly end. The second says that this takes too long, perhaps because a
      // read hangs on a dead network file system: then leave without asking anybody.
      if signal != nil { _exit(128 + Int32(number)) }
      // ORDERING: releasing; pairs with the acquiring load in `signal`, so that whoever finds the search
      // cancelled finds the reason as well.
      received.store(Int32(number), ordering: .releasing)
      cancellation.cancel()
    }
  }

  private func startThread(reading pipe: Int32) -> Bool {
    // SAFETY: one reference goes to the new thread; it is taken back here if there is no such thread.
    let job = Unmanaged.passRetained(Job(owner: self, pipe: pipe))
    var thread = pthread_t()
    let failure = pthread_create(
      &thread, nil,
      { argument in
        // SAFETY: the argument is the job retained above, and this thread takes over that one reference.
        let job = Unmanaged<Job>.fromOpaque(argument!).takeRetainedValue()
        job.owner.wait(reading: job.pipe)
        return nil
      }, job.toOpaque())
    if failure == 0 { pthread_detach(thread) } else { job.release() }
    return failure == 0
  }

  private static func makePipe() -> (read: Int32, write: Int32)? {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    // The handler must never wait: should the pipe be full, there is a signal to be read in any case.
    _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
    return (ends[0], ends[1])
  }

  /// A process started with `nohup`, or in the background by a shell, is meant to ignore these signals.
  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(signal, nil, &action) == 0 else { return false }
    // SAFETY: SIG_IGN is the address 1, no function; the bits are only compared and never called.
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self) == 1
  }

  private final class Job: Sendable {
    let owner: Interrupts
    let pipe: Int32

    init(owner: Interrupts, pipe: Int32) {
      self.owner = owner
      self.pipe = pipe
    }
  }
}

/// Where the handler writes. An atomic, as a plain variable could not be read safely in a handler.
private let handlerPipe = Atomic<Int32>(-1)

/// The signal handler: `write` is one of the few calls that POSIX allows here.
private func noteSignal(_ signal: Int32) {
  let saved = errno  // the interrupted code may be just about to look at it
  var number = UInt8(truncatingIfNeeded: signal)
  // ORDERING: relaxed; the value was stored before the handler was installed, and never changes after.
  write(handlerPipe.load(ordering: .relaxed), &number, 1)
  errno = saved
}
