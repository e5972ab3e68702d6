import CTracing
import Glibc

/// Reads the tasks of the watched process again and again, each time on a thread of its own: the view does not wait.
///
/// Where tasks may be is known from the look at the memory that the view takes anyway (`TopWatch`). The thread reads
/// them there, and finds their places in the program. It ends with that, and its result is taken once it has been joined;
/// so the threads share nothing while it runs, but what both only read.
final class TaskWatch {
  private(set) var latest: TaskSummary?
  /// The uptime at which the latest ones were read.
  private var readAt: UInt64 = 0
  private var pace = ReadingPace()
  private var running: (thread: pthread_t, reading: Reading)?
  private var runtime: SwiftRuntime?
  private var symbols: Symbols?
  /// The images that these are of.
  private var images: [MappedImage] = []
  private var hasLooked = false

  // Its result is of no use any more. The thread keeps what it works with.
  deinit { if let running { pthread_detach(running.thread) } }

  private var isDue: Bool { running == nil && UptimeClock.now >= pace.next }

  /// The class of tasks, for the look that `start` is to use; 0 if tasks are not to be read now.
  func taskClass(in process: TargetProcess) -> UInt64 {
    take()
    hasLooked = isDue
    guard hasLooked else { return 0 }
    let began = UptimeClock.now
    let now = MappedImage.all(of: process)
    if !now.elementsEqual(images, by: { $0.start == $1.start && $0.end == $1.end && $0.path == $1.path }) {
      (images, runtime, symbols) = (now, nil, nil)
    }
    // The loader may not have prepared the runtime's variables yet, so it is searched for until it is found.
    if runtime == nil { runtime = SwiftRuntime(process, images) }
    if runtime == nil {
      latest = TaskSummary.none
      readAt = began
      pace.finish(at: UptimeClock.now, processorTime: UptimeClock.now - began, elapsed: 0)
    }
    return runtime?.tasks.taskClass ?? 0
  }

  /// Begins to read the tasks, if the look was taken with the class of tasks.
  func start(_ snapshot: EngineSnapshot, _ record: InspectionRecord) {
    guard hasLooked, snapshot.isStarted, let runtime else { return }
    hasLooked = false
    let symbols = symbols ?? Symbols(snapshot.process, images, engine: record.image)
    self.symbols = symbols
    let reading = Reading(snapshot, record, runtime, symbols)
    guard let thread = Self.makeThread(reading) else {
      pace.finish(at: UptimeClock.now, processorTime: 0, elapsed: .max)
      return
    }
    running = (thread, reading)
  }

  /// Takes the result of a reading that has ended.
  func take() {
    guard let (thread, reading) = running, tracing_join_ended(thread) == 0 else { return }
    running = nil
    latest = reading.result
    readAt = reading.began
    let now = UptimeClock.now
    pace.finish(at: now, processorTime: reading.processorTime, elapsed: now - reading.began)
  }

  /// Takes it as soon as it has ended.
  func wait(while goesOn: () -> Bool) {
    take()
    while running != nil && goesOn() {
      usleep(5000)
      take()
    }
  }

  /// The latest tasks, and how old they are.
  var shown: TaskSummary? {
    var tasks = latest
    tasks?.age = UptimeClock.now - readAt
    return tasks
  }

  /// The signals that the view's thread is to get: they end it, or interrupt its wait for keys.
  private static let viewSignals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH]

  private static func makeThread(_ reading: Reading) -> pthread_t? {
    var (signals, before) = (sigset_t(), sigset_t())
    sigemptyset(&signals)
    for number in viewSignals { sigaddset(&signals, number) }
    pthread_sigmask(SIG_BLOCK, &signals, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    var thread = pthread_t()
    // SAFETY: balanced by the thread, or below if there is none.
    let argument = Unmanaged.passRetained(reading)
    let error = pthread_create(
      &thread, nil,
      { argument in
        // SAFETY: what `makeThread` has passed.
        Unmanaged<Reading>.fromOpaque(argument!).takeRetainedValue().run()
        return nil
      }, argument.toOpaque())
    if error != 0 { argument.release() }
    return error == 0 ? thread : nil
  }
}

/// One reading of the tasks. Until its thread has been joined, it is that thread's alone.
private final class Reading {
  let began = UptimeClock.now
  private var snapshot: EngineSnapshot?
  private let record: InspectionRecord
  private let runtime: SwiftRuntime
  private let symbols: Symbols
  private(set) var result: TaskSummary?
  private(set) var processorTime: UInt64 = 0

  init(
    _ snapshot: EngineSnapshot, _ record: InspectionRecord, _ runtime: SwiftRuntime, _ symbols: Symbols
  ) {
    (self.snapshot, self.record, self.runtime, self.symbols) = (snapshot, record, runtime, symbols)
  }

  func run() {
    let before = Self.timeOfChildren
    if var snapshot {
      self.snapshot = nil
      snapshot.readTaskPlaces(runtime, symbols)
      result = TaskSummary(snapshot, isStalled: isStalled)
    }
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    processorTime = UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    // The symbolizer's.
    processorTime += Self.timeOfChildren - before
  }

  private func isStalled(_ snapshot: EngineSnapshot) -> Bool {
    guard StalledTasks.areStalled(snapshot) else { return false }
    return StalledTasks.isConfirmed(snapshot.process, stopsThreads: false) { process in
      var again = try? EngineReader.read(process, record, taskClass: runtime.tasks.taskClass)
      again?.readTasks(runtime, symbols)
      return again
    }
  }

  private static var timeOfChildren: UInt64 {
    var usage = rusage()
    getrusage(Int32(RUSAGE_CHILDREN.rawValue), &usage)
    return [usage.ru_utime, usage.ru_stime].reduce(0) {
      $0 + UInt64($1.tv_sec) * 1_000_000_000 + UInt64($1.tv_usec) * 1000
    }
  }
}

/// When to read the tasks again: so late that reading them takes at most a tenth of one processor.
struct ReadingPace {
  private static let share: UInt64 = 10
  /// Longer waits are not for the sake of a busy machine: the command was suspended meanwhile.
  private static let mostElapsed: UInt64 = 60_000_000_000

  private(set) var next: UInt64 = 0

  /// - Parameter elapsed: How long it took, with the waits for a processor, memory on a disk, and the symbolizer.
  mutating func finish(at now: UInt64, processorTime: UInt64, elapsed: UInt64) {
    next = now + max(processorTime * (Self.share - 1), min(elapsed, Self.mostElapsed))
  }
}
