/// A fixed number of threads for the tasks of Swift Concurrency (`CONCOURSE_TASK_THREADS`), as on Apple's platforms: a
/// program that blocks them hangs here as it does there.
///
/// Swift's runtime makes a concurrent queue for each priority, to which it submits the jobs of its global executor. With
/// the setting, they get one more queue as their target, whose width is that number. A job that blocks keeps its place
/// on that queue, although the pool replaces its thread. Jobs keep their classes, but start in the order of their
/// submission. Other queues, the main actor and the executors of a program are not affected.
enum TaskThreads {
  /// The label of the queues of the global executor.
  static let label = "Swift global concurrent queue"
  private static let most = 4096

  private static let count: Int? = {
    guard let text = Process.trustedEnvironment("CONCOURSE_TASK_THREADS") else { return nil }
    guard let number = Int(text), (1...most).contains(number) else {
      Trap.warn("CONCOURSE_TASK_THREADS=\(text) is not a number from 1 to \(most); ignored")
      return nil
    }
    return number
  }()

  private static let queue: DispatchQueue? = count.map { count in
    let queue = DispatchQueue(label: "CONCOURSE_TASK_THREADS=\(count)", attributes: .concurrent)
    queue.setWidth(count)
    return queue
  }

  /// Reads the setting, so that a bad value is named when the program begins.
  static func prepare() { _ = count }

  /// Makes everything that is made on first use.
  static func settle() {
    _ = queue
    if TaskWaits.areNamed { _ = made }
  }

  /// Called for a queue that sets itself no width. Swift's runtime does so for the queues of the global executor, before
  /// the first job.
  static func adopt(_ made: DispatchQueue) {
    guard made.label == label else { return }
    if made.mayChangeTarget, let queue { made.retarget(to: queue) }
    if TaskWaits.areNamed { note(made) }
  }

  // MARK: CONCOURSE_STRICT

  /// The addresses of the queues that the runtime has made, one for each priority. It keeps them for ever.
  private static let made = FixedSet(capacity: 16)

  private static func note(_ queue: DispatchQueue) {
    _ = made.insert(UInt64(UInt(bitPattern: Unmanaged.passUnretained(queue).toOpaque())))
    SleepingTasks.watch()
  }

  /// Whether there is a queue of the global executor at an address.
  static func isOfTasks(_ address: UInt) -> Bool { made.contains(UInt64(address)) }
}
