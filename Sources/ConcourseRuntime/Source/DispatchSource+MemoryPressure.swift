extension DispatchSource {
  /// What a memory pressure source can report. Matching C constants: `DISPATCH_MEMORYPRESSURE_NORMAL` and
  /// so on.
  public struct MemoryPressureEvent: OptionSet, RawRepresentable, Sendable {
    /// The bits, as in C.
    public let rawValue: UInt

    /// The events with these bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// There is enough memory again.
    public static let normal = MemoryPressureEvent(rawValue: 0x1)
    /// Memory runs short: give back what can easily be made again.
    public static let warning = MemoryPressureEvent(rawValue: 0x2)
    /// Memory is so short that the kernel may soon end processes: give back what can be missed.
    public static let critical = MemoryPressureEvent(rawValue: 0x4)
    /// All of them.
    public static let all: MemoryPressureEvent = [.normal, .warning, .critical]

    /// What can be observed here: `.all`. Code for several systems intersects its mask with this.
    public static var observable: MemoryPressureEvent { .all }

    static let names: [(UInt, String)] = [
      (normal.rawValue, "normal"), (warning.rawValue, "warning"), (critical.rawValue, "critical"),
    ]
  }

  /// Creates a source that calls its handler when memory becomes short, shorter, or sufficient again.
  ///
  /// Changes are reported; the level is taken to be normal at first. `data` is the one level that has been
  /// reached last. It is that of the control group of this process if the kernel tells, else the machine's:
  ///
  /// - where the kernel reports stalls (PSI): a warning when tasks have waited for memory for 300 of
  ///   2,000 ms, critical when all did at once for 200; each ends 5 s after its last stall;
  /// - where it does not, memory is read every second: a warning when less than 10 % can be used without
  ///   swapping, or the control group had to give memory back; critical below 5 %, or when the group ran
  ///   out of it; they end at 15 % and 8 %.
  ///
  /// Traps on an empty mask, and on bits that have no meaning.
  /// - Parameters:
  ///   - eventMask: the levels to report.
  ///   - queue: where the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_MEMORYPRESSURE`.
  public class func makeMemoryPressureSource(
    eventMask: MemoryPressureEvent, queue: DispatchQueue? = nil
  ) -> any DispatchSourceMemoryPressure {
    makeMemoryPressure(eventMask, queue).orTrap()
  }

  /// As `makeMemoryPressureSource`, for callers that must not die of a refusal.
  static func makeMemoryPressure(
    _ mask: MemoryPressureEvent, _ queue: DispatchQueue?
  ) -> Result<DispatchSource, SourceRefusal> {
    MemoryPressureBackend.make(mask: mask).map { backend in
      DispatchSource(memoryPressure: backend, mask, queue)
    }
  }

  convenience init(
    memoryPressure backend: MemoryPressureBackend, _ mask: MemoryPressureEvent, _ queue: DispatchQueue?
  ) {
    // The last level counts: one that has passed needs no action any more.
    self.init(
      SourceCore(
        kind: .memoryPressure, handle: 0, mask: mask.rawValue, merging: .replace, target: queue,
        backend: backend))
  }
}

/// A source that reports how short memory is.
public protocol DispatchSourceMemoryPressure: DispatchSourceProtocol {
  /// The levels asked for; empty after cancellation. Matching C function: `dispatch_source_get_mask`.
  var mask: DispatchSource.MemoryPressureEvent { get }

  /// The level that was reached last; defined only inside the event handler. Matching C function:
  /// `dispatch_source_get_data`.
  var data: DispatchSource.MemoryPressureEvent { get }
}

extension DispatchSourceMemoryPressure {
  /// See the requirement.
  public var mask: DispatchSource.MemoryPressureEvent { .init(rawValue: source.mask) }

  /// See the requirement.
  public var data: DispatchSource.MemoryPressureEvent { .init(rawValue: source.data) }
}

extension DispatchSource: DispatchSourceMemoryPressure {}

/// Listens to how short memory is: through the kernel's notices of stalls in our control group, or else on
/// the machine; where both are closed to us, by reading every second how much is left.
///
/// With notices nothing happens while there is enough memory. `PressureLevel` decides what follows.
final class MemoryPressureBackend {
  /// A trigger and the watch on it.
  private struct Post {
    let trigger: PressureTrigger
    let watch: FileWatch
    /// Has told, and is armed again by the next tick: a stall is told once a second at most.
    var hasTold = false
  }

  private let mask: DispatchSource.MemoryPressureEvent
  private let gauge: MemoryGauge
  private let openTriggers: @Sendable () -> [PressureTrigger]?
  private let lock = Lock()
  // GUARDED BY `lock`.
  private var source: SourceCore?
  private var level: PressureLevel
  /// Empty when memory is read every second.
  private var posts: [Post] = []
  private var timer: LoopTimer?

  /// Between two looks; a tenth of it they may be late, so that several share a wake-up.
  private let pause: UInt64

  /// A backend, or why there can be none.
  static func make(
    mask: DispatchSource.MemoryPressureEvent
  ) -> Result<MemoryPressureBackend, SourceRefusal> {
    let refusal = SourceMask.refusal(
      of: mask.rawValue, observable: DispatchSource.MemoryPressureEvent.observable.rawValue,
      names: DispatchSource.MemoryPressureEvent.names, in: "makeMemoryPressureSource()", because: "")
    if let refusal { return .failure(refusal) }
    let gauge = MemoryGauge(root: "")
    return .success(MemoryPressureBackend(mask: mask, gauge: gauge) { triggers(of: gauge) })
  }

  /// For tests, which bring files, triggers and times of their own.
  init(
    mask: DispatchSource.MemoryPressureEvent, gauge: MemoryGauge, level: PressureLevel = PressureLevel(),
    pause: UInt64 = 1_000_000_000, openTriggers: @escaping @Sendable () -> [PressureTrigger]?
  ) {
    self.mask = mask
    self.gauge = gauge
    self.level = level
    self.pause = pause
    self.openTriggers = openTriggers
  }

  /// The best triggers that the system grants.
  static func triggers(of gauge: MemoryGauge) -> [PressureTrigger]? {
    gauge.groupPressureFile.flatMap(PressureTrigger.open) ?? PressureTrigger.open(gauge.machinePressureFile)
  }

  /// Whether the kernel's notices are used, rather than readings.
  var isNotified: Bool { lock.withLock { !posts.isEmpty } }

  private func report(_ change: (inout PressureLevel) -> PressureLevel.Level?) {
    let (source, entered) = lock.withLock { (self.source, change(&level)) }
    guard let source, let entered, mask.contains(entered.event) else { return }
    source.raise(entered.event.rawValue)
  }
}

// MARK: - Life

extension MemoryPressureBackend: SourceBackend {
  func install(for source: SourceCore) {
    let timer = LoopTimer(owner: self)
    let opened = (openTriggers() ?? []).map { trigger in
      Post(
        trigger: trigger, watch: FileWatch(descriptor: trigger.descriptor, interest: .priority, owner: self))
    }
    lock.withLock { (self.source, self.timer, posts) = (source, timer, opened) }
    for post in opened { _ = post.watch.install() }
    if lock.withLock({ posts.isEmpty }) {
      // None were granted, or they turned out to be useless while the next ones were being installed.
      for post in opened { post.watch.remove() }
      startReading()
    }
  }

  func remove() {
    let (timer, last) = lock.withLock { () -> (LoopTimer?, SourceCore?) in
      defer { (self.source, self.timer) = (nil, nil) }
      return (self.timer, self.source)
    }
    timer?.cancel()
    dropTriggers()
    // Released here, outside the lock.
    withExtendedLifetime(last) {}
  }

  private func dropTriggers() {
    let dropped = lock.withLock { () -> [Post] in
      defer { posts = [] }
      return posts
    }
    for post in dropped {
      post.watch.remove()
      post.trigger.close()
    }
  }

  private func startReading() {
    guard readOnce() else {
      return Trap.warn(
        "nothing tells how much memory is left (no /proc); a memory pressure source stays silent")
    }
    setTimer()
  }

  /// - Returns: whether anything could be read.
  private func readOnce() -> Bool {
    guard let reading = gauge.read() else { return false }
    let now = Clock.uptime()
    report { $0.read(reading, at: now) }
    return true
  }

  private func setTimer() {
    guard let timer = lock.withLock({ timer }) else { return }
    let next = Clock.uptime() &+ pause
    timer.set(TimerWindow(clock: .uptime, earliest: next, latest: next &+ pause / 10))
    // `remove` may have come between, and found the timer not yet set.
    if lock.withLock({ self.timer == nil }) { timer.cancel() }
  }
}

// MARK: - Events

extension MemoryPressureBackend: FileWatchOwner, TimerOwner {
  func fileIsReady(_ watch: FileWatch) {
    let told = lock.withLock { () -> PressureTrigger? in
      guard let place = posts.firstIndex(where: { $0.watch === watch }) else { return nil }
      posts[place].hasTold = true
      return posts[place].trigger
    }
    guard let told else { return }
    // A file that can never be waited for took the condition, but is none of the kernel's.
    if told.isBroken || watch.isAlwaysReady {
      dropTriggers()
      return startReading()
    }
    let now = Clock.uptime()
    report { $0.stalled(told.level, at: now) }
    setTimer()
  }

  func timerIsDue(_ timer: LoopTimer) {
    guard isNotified else {
      // What cannot be read now may be readable later.
      _ = readOnce()
      return setTimer()
    }
    let now = Clock.uptime()
    report { $0.look(at: now) }
    let (quiet, isOver) = lock.withLock { () -> ([FileWatch], Bool) in
      defer { for place in posts.indices { posts[place].hasTold = false } }
      return (posts.filter(\.hasTold).map(\.watch), level.level == .normal)
    }
    for watch in quiet { watch.rearm() }
    if !isOver { setTimer() }
  }
}

// SAFETY: the guards above; the rest is constant.
extension MemoryPressureBackend: @unchecked Sendable {}
