internal import CConcourse
internal import Glibc

/// Sleeping and waking on a 32-bit word: the only way in which the engine's threads sleep.
///
/// Matching system call: `futex(2)`, private to the process, with absolute deadlines, so a spurious wake-up never
/// prolongs a wait.
@usableFromInline
package enum Futex {
  /// Why a wait returned.
  package enum Outcome {
    /// Woken, the word had another value, or the kernel woke us for no reason: look again.
    case lookAgain
    /// The deadline has passed.
    case timedOut
  }

  /// Sleeps while `word` equals `expected`, at most until `deadline`.
  package static func wait(
    _ word: borrowing Atomic<UInt32>, expected: UInt32, deadline: Deadline = .never
  ) -> Outcome {
    // SAFETY: an Atomic is its own storage and is always passed by address, so this is the address
    // of the word itself; it stays valid for the borrow, that is for the whole call.
    withUnsafePointer(to: word) { pointer in
      let address = UnsafeRawPointer(pointer).assumingMemoryBound(to: UInt32.self)
      let failure: Int32
      let began = Clock.uptime()
      switch deadline {
      case .immediate:
        return .timedOut
      case .never:
        failure = concourse_futex_wait(address, expected, 0, 0)
      case .uptime(let nanoseconds):
        failure = concourse_futex_wait(address, expected, 1, nanoseconds)
      case .wall(let nanoseconds):
        failure = concourse_futex_wait(address, expected, 2, nanoseconds)
      }
      if failure != EAGAIN {
        CurrentThread.state.pointee.last_sleep = UInt32(clamping: Clock.uptime() &- began)
      }
      // EINTR and EAGAIN mean: look at the word again. Every caller loops.
      return failure == ETIMEDOUT ? .timedOut : .lookAgain
    }
  }

  /// Wakes up to `count` threads that sleep on `word`.
  @usableFromInline
  package static func wake(_ word: borrowing Atomic<UInt32>, count: Int32) {
    // SAFETY: as in `wait`. The kernel uses the address as a key and never dereferences it here, so a word that has
    // just been freed costs at most a spurious wake-up elsewhere.
    CurrentThread.state.pointee.has_woken = 1
    withUnsafePointer(to: word) { pointer in
      _ = concourse_futex_wake(UnsafeRawPointer(pointer).assumingMemoryBound(to: UInt32.self), count)
    }
  }
}
