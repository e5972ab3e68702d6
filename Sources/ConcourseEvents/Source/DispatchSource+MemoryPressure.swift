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
    /// Memory is running short: free what is cheap to rebuild.
    public static let warning = MemoryPressureEvent(rawValue: 0x2)
    /// Memory is so short that the kernel may soon kill processes: free everything that is not essential.
    public static let critical = MemoryPressureEvent(rawValue: 0x4)
    /// All levels.
    public static let all: MemoryPressureEvent = [.normal, .warning, .critical]

    /// The levels that can be observed on this system: `.all`. Portable code intersects its mask with this.
    public static var observable: MemoryPressureEvent { .all }

    static let names: [(UInt, String)] = [
      (normal.rawValue, "normal"), (warning.rawValue, "warning"), (critical.rawValue, "critical"),
    ]
  }

  /// Creates a source that calls its handler when memory becomes short, shorter, or sufficient again.
  ///
  /// The source reports changes of level, starting from normal. `data` is the single level that was reached last. It
  /// describes the control group of this process if the kernel reports on it, otherwise the machine:
  ///
  /// - With kernel stall notices (PSI): a warning when some tasks have stalled on memory for 300 ms within 2,000 ms;
  ///   critical when all tasks have stalled at once for 200 ms. Each level ends 5 s after its last notice.
  /// - Without them the source reads memory every second: a warning when less than 10 % can be used without swapping,
  ///   or when the kernel had to reclaim memory from the control group; critical below 5 %, or when the group ran out
  ///   of memory. The levels end at 15 % and 8 %.
  ///
  /// Traps on an empty mask, and on undefined bits.
  /// - Parameters:
  ///   - eventMask: the levels to report.
  ///   - queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_MEMORYPRESSURE`.
  public class func makeMemoryPressureSource(
    eventMask: MemoryPressureEvent, queue: DispatchQueue? = nil
  ) -> any DispatchSourceMemoryPressure {
    makeMemoryPressure(eventMask, queue).orTrap()
  }

  /// As `makeMemoryPressureSource`, but returns a refusal instead of trapping.
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
    // Only the last level counts: an earlier one needs no action any more.
    self.init(
      SourceCore(
        kind: .memoryPressure, handle: 0, mask: mask.rawValue, merging: .replace, target: queue,
        backend: backend))
  }
}

/// A source that reports how short memory is.
public protocol DispatchSourceMemoryPressure: DispatchSourceProtocol {
  /// The requested levels; empty after cancellation. Matching C function: `dispatch_source_get_mask`.
  var mask: DispatchSource.MemoryPressureEvent { get }

  /// The level that was reached last; defined only inside the event handler.
  /// Matching C function: `dispatch_source_get_data`.
  var data: DispatchSource.MemoryPressureEvent { get }
}

extension DispatchSourceMemoryPressure {
  /// See the requirement.
  public var mask: DispatchSource.MemoryPressureEvent { .init(rawValue: source.mask) }

  /// See the requirement.
  public var data: DispatchSource.MemoryPressureEvent { .init(rawValue: source.data) }
}

extension DispatchSource: DispatchSourceMemoryPressure {}

/// Observes memory pressure through the kernel's stall notices (PSI): those of our control group, else those of the
/// machine. If the system grants neither, it reads every second how much memory is left.
///
/// With notices, nothing runs while there is enough memory. `PressureLevel` decides the level.
final class MemoryPressureBackend {
  /// A PSI trigger and the watch of its descriptor.
  private struct ArmedTrigger {
    let trigger: PressureTrigger
    let watch: FileWatch
    /// Has fired. The next tick re-arms it, so that a stall is reported once a second at most.
    var hasFired = false
  }

  private let mask: DispatchSource.MemoryPressureEvent
  private let gauge: MemoryGauge
  private let openTriggers: @Sendable () -> [PressureTrigger]?
  private let lock = Lock(.memoryPressureBackend)
  // GUARDED BY `lock`.
  private var source: SourceCore?
  private var level: PressureLevel
  /// Empty while memory is read every second.
  private var armed: [ArmedTrigger] = []
  /// While `install` registers the descriptors of triggers, it alone closes them: a number must not become another file.
  private var isInstalling = false
  /// A reading has failed, most likely for want of descriptors, and none has succeeded since.
  private var isBlind = false
  private var timer: LoopTimer?

  /// The time between two ticks, in nanoseconds. A tick may be a tenth of it late, so that several timers share a
  /// wake-up.
  private let pause: UInt64

  /// Makes a backend, or says why the mask does not allow one.
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

  /// Tests pass their own files, triggers and times.
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

  /// The triggers of our control group, else those of the machine; nil if the system grants neither.
  static func triggers(of gauge: MemoryGauge) -> [PressureTrigger]? {
    gauge.groupPressureFile.flatMap(PressureTrigger.open) ?? PressureTrigger.open(gauge.machinePressureFile)
  }

  /// Whether the backend uses the kernel's notices rather than readings.
  var isNotified: Bool { lock.withLock { !armed.isEmpty } }

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
    lock.withLock { (self.source, self.timer) = (source, timer) }
    if !arm() { startReading() }
  }

  /// Opens the triggers and watches them.
  /// - Returns: whether notices will come.
  private func arm() -> Bool {
    let opened = (openTriggers() ?? []).map { trigger in
      ArmedTrigger(
        trigger: trigger, watch: FileWatch(descriptor: trigger.descriptor, interest: .priority, owner: self))
    }
    let isRemoved = lock.withLock {
      if timer != nil { (armed, isInstalling) = (opened, true) }
      return timer == nil
    }
    if isRemoved {
      for entry in opened { entry.trigger.close() }
      return false
    }
    for entry in opened { _ = entry.watch.install() }
    let isNotified = lock.withLock {
      isInstalling = false
      return !armed.isEmpty
    }
    // The system granted no triggers, `fileIsReady` found one useless while the next ones were being installed, or
    // `remove` has come in between.
    if !isNotified { close(opened) }
    return isNotified
  }

  func remove() {
    let (timer, last) = lock.withLock { () -> (LoopTimer?, SourceCore?) in
      defer { (self.source, self.timer) = (nil, nil) }
      return (self.timer, self.source)
    }
    timer?.cancel()
    dropTriggers()
    // Release the source here, outside the lock.
    withExtendedLifetime(last) {}
  }

  private func dropTriggers() {
    let dropped = lock.withLock { () -> [ArmedTrigger] in
      defer { armed = [] }
      return isInstalling ? [] : armed
    }
    close(dropped)
  }

  private func close(_ triggers: [ArmedTrigger]) {
    for entry in triggers {
      entry.watch.remove()
      entry.trigger.close()
    }
  }

  private func startReading() {
    if !readOnce() && gauge.isMissing {
      return Trap.warn(
        "cannot read how much memory is left (no /proc); a memory pressure source stays silent")
    }
    setTimer()
  }

  /// - Returns: whether anything could be read.
  private func readOnce() -> Bool {
    guard let reading = gauge.read() else {
      lock.withLock { isBlind = true }
      return false
    }
    let now = Clock.uptime()
    report { $0.read(reading, at: now) }
    return true
  }

  private func setTimer() {
    guard let timer = lock.withLock({ timer }) else { return }
    let next = Clock.uptime() &+ pause
    timer.set(TimerWindow(clock: .uptime, earliest: next, latest: next &+ pause / 10))
    // `remove` may have run in between and found the timer not yet set.
    if lock.withLock({ self.timer == nil }) { timer.cancel() }
  }
}

// MARK: - Events

extension MemoryPressureBackend: FileWatchOwner, TimerOwner {
  func fileIsReady(_ watch: FileWatch) {
    let fired = lock.withLock { () -> PressureTrigger? in
      guard let place = armed.firstIndex(where: { $0.watch === watch }) else { return nil }
      armed[place].hasFired = true
      return armed[place].trigger
    }
    guard let fired else { return }
    // A trigger of a removed control group, or a file that accepted the trigger but is not a PSI file.
    if fired.isBroken || watch.isAlwaysReady {
      dropTriggers()
      return startReading()
    }
    let now = Clock.uptime()
    report { $0.stalled(fired.level, at: now) }
    setTimer()
  }

  func timerIsDue(_ timer: LoopTimer) {
    guard isNotified else {
      let wasBlind = lock.withLock { isBlind }
      // A reading that fails now may succeed later. Opening the triggers probably failed for the same reason.
      if readOnce() && wasBlind {
        lock.withLock { isBlind = false }
        _ = arm()
      }
      return setTimer()
    }
    let now = Clock.uptime()
    report { $0.update(at: now) }
    let (fired, isNormal) = lock.withLock { () -> ([FileWatch], Bool) in
      defer { for place in armed.indices { armed[place].hasFired = false } }
      return (armed.filter(\.hasFired).map(\.watch), level.level == .normal)
    }
    for watch in fired { watch.rearm() }
    if !isNormal { setTimer() }
  }
}

// SAFETY: mutable fields are guarded as noted above; the rest is constant.
extension MemoryPressureBackend: @unchecked Sendable {}
