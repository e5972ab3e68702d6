import CConcourseTesting
import Glibc

/// The clock of a schedule. It stands while a thread can go on, and jumps to the next deadline when none can; a test that
/// must look between two deadlines moves it itself.
///
/// ```
/// @Test(.explored()) func draftIsSavedOnce() async {
///   editor.type("a")  // is saved two seconds later
///   await ExploredTime.advance(by: .seconds(1))
///   #expect(editor.saves == 0)
///   await ExploredTime.advance(by: .seconds(1))
///   #expect(editor.saves == 1)
/// }
/// ```
///
/// Only the body of an exploration may call these functions; elsewhere they trap. Negative durations are zero.
public enum ExploredTime {
  /// Lets so much time pass, with all that is due then, and waits until nothing else can go on.
  public static func advance(by duration: Duration) async {
    await apart {
      sleep(duration)
      becomeIdle()
    }
  }

  /// Waits until nothing else can go on before something is due. Up to twenty milliseconds may pass meanwhile, in which
  /// the runtime looks for work behind blocked threads.
  public static func runUntilIdle() async { await apart { becomeIdle() } }

  /// As the asynchronous one; the calling thread waits.
  public static func advance(by duration: Duration) {
    sleep(duration)
    becomeIdle()
  }

  /// As the asynchronous one; the calling thread waits.
  public static func runUntilIdle() { becomeIdle() }

  private static func becomeIdle() {
    let isExplored = concourse_testing_await_idleness() != 0
    precondition(isExplored, "ExploredTime is used outside of an exploration")
  }

  private static func sleep(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    guard duration > .zero else { return }
    var wanted = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var rest = timespec()
    while nanosleep(&wanted, &rest) != 0 && errno == EINTR { wanted = rest }
  }

  /// Runs the body on a thread of its own, since the threads of tasks are needed meanwhile.
  private static func apart(_ body: @escaping @Sendable () -> Void) async {
    final class Work {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let work = Work {
        body()
        continuation.resume()
      }
      var thread = pthread_t()
      // SAFETY: the new thread releases what was retained for it.
      let error = pthread_create(
        &thread, nil,
        {
          Unmanaged<Work>.fromOpaque($0!).takeRetainedValue().body()
          return nil
        }, Unmanaged.passRetained(work).toOpaque())
      precondition(error == 0, "no thread can be made")
      pthread_detach(thread)
    }
  }
}
