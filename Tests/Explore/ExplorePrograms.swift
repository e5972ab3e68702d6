import Dispatch
import Glibc

/// Forty programs that have a bug which few schedules show, each with a mended twin. They end with another status than 0 if
/// the bug has struck.
enum ExplorePrograms {
  enum Body: Sendable {
    /// Runs on the main thread, with Dispatch and threads only.
    case plain(@Sendable (_ mended: Bool) -> Void)
    /// Runs as a task, while the main thread serves the main queue.
    case task(@Sendable (_ mended: Bool) async -> Void)
  }

  static let all: [(name: String, body: Body)] = queues + locks + events + actors + tasks
}

/// Ends the program with status 1 if a bug has struck.
func require(_ holds: Bool, _ failure: @autoclosure () -> String) {
  guard !holds else { return }
  complain(failure())
  exit(1)
}

func complain(_ text: String) {
  let line = Array("\(text)\n".utf8)
  write(2, line, line.count)
}

/// A value with a lock of its own: each access is safe by itself, two of them are not one step.
final class Cell<Value>: @unchecked Sendable {
  private let mutex = Lock()
  // SAFETY: GUARDED BY mutex, hence the class is Sendable.
  private var stored: Value

  init(_ value: Value) { stored = value }

  var value: Value {
    get { mutex.holding { stored } }
    set { mutex.holding { stored = newValue } }
  }

  /// Changes the value in one step.
  func update<Result>(_ body: (inout Value) -> Result) -> Result { mutex.holding { body(&stored) } }
}

extension Cell where Value == Int {
  /// Adds one in one step.
  @discardableResult
  func increment() -> Int {
    update {
      $0 += 1
      return $0
    }
  }
}

/// A mutex of the system.
final class Lock: @unchecked Sendable {
  // SAFETY: the system's mutex may be used by all threads. It lies at one address until the object is released.
  let handle = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  init(recursive: Bool = false) {
    var attributes = pthread_mutexattr_t()
    pthread_mutexattr_init(&attributes)
    if recursive { pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_RECURSIVE)) }
    pthread_mutex_init(handle, &attributes)
  }

  deinit {
    pthread_mutex_destroy(handle)
    handle.deallocate()
  }

  func holding<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(handle)
    defer { pthread_mutex_unlock(handle) }
    return body()
  }
}

/// Runs all bodies at once, each on a thread of its own, and waits for their ends.
func threads(_ bodies: (@Sendable () -> Void)...) {
  final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  let started = bodies.map { body in
    var thread = pthread_t()
    // SAFETY: the new thread releases what was retained for it.
    pthread_create(
      &thread, nil,
      { argument in
        Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue().body()
        return nil
      }, Unmanaged.passRetained(Start(body)).toOpaque())
    return thread
  }
  for thread in started { pthread_join(thread, nil) }
}
