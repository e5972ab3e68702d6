internal import ConcourseRecording
internal import ConcourseRuntime
internal import Glibc

/// Reads what the process records, for all streams of statistics. A thread runs while there are streams.
///
/// A thread of its own, since a timer on a queue would be late when the pool is busy, which is when it matters, and would
/// be among what it counts. The fuller the rings, the more often the thread reads (every 1 to 50 ms). A burst of more
/// events than a ring holds, between two reads, is counted as lost.
final class StatisticsReader {
  static let shared = StatisticsReader()

  private struct State {
    var streams: [ObjectIdentifier: StatisticsStream] = [:]
    var hasThread = false
    var reader: RecordingReader?
    /// Events without memory before the oldest stream, and those lost since.
    var missedBefore: UInt64 = 0
    var lost: UInt64 = 0
    var lastPart: UInt64 = 0
  }

  /// Held while events are counted, which takes milliseconds if there are tens of thousands.
  private let lock = Lock(.statistics)
  // GUARDED BY `lock`.
  private var state = State()
  /// The process whose thread reads. A forked child may find the lock held, by a thread that it does not have.
  private let process = getpid()

  private func withState<Result>(_ body: (inout State) -> Result) -> Result { lock.withLock { body(&state) } }

  private var isInherited: Bool { getpid() != process }

  var isPossible: Bool { !isInherited && Recording.isPossible }

  // MARK: Streams

  /// Begins to record, and to count for a new stream.
  /// - Returns: nil in a forked child, and if the system refuses a thread or memory.
  func begin(every interval: UInt64) -> StatisticsStream? {
    if isInherited || !Recording.beginStream() { return nil }
    let stream = withState { state -> StatisticsStream? in
      if state.streams.isEmpty {
        // Of earlier streams, and of other tools.
        (state.missedBefore, state.lost) = (Recording.missed, 0)
        state.reader = nil
        if Self.findReader(&state) { state.reader?.skipPast() }
      } else {
        // What happened before is not this stream's. Its place in the rings says so: the times of two threads may be a
        // little apart.
        Self.count(&state, before: Clock.uptime())
      }
      if !state.hasThread { state.hasThread = Self.startThread() }
      guard state.hasThread else { return nil }
      let stream = StatisticsStream(
        interval, start: Clock.uptime(), lost: state.lost, names: state.reader?.latestNames ?? [])
      state.streams[ObjectIdentifier(stream)] = stream
      return stream
    }
    if stream == nil { Recording.endStream() }
    return stream
  }

  /// Has `completion` called with what happened since the last call, once the interval has passed; with nil if the
  /// stream has ended.
  /// - Returns: false if another call waits.
  func next(_ stream: StatisticsStream, _ completion: @escaping StatisticsStream.Completion) -> Bool {
    let isOpen: Bool? =
      isInherited
      ? false
      : withState { state in
        if state.streams[ObjectIdentifier(stream)] == nil { return false }
        if stream.completion != nil { return nil }
        stream.completion = completion
        return true
      }
    if isOpen == false { completion(nil) }
    return isOpen != nil
  }

  /// Ends a stream, and recording with the last one. No effect on a stream that has ended.
  func end(_ stream: StatisticsStream) {
    if isInherited { return }
    let (isEnded, completion) = withState { state in
      guard state.streams.removeValue(forKey: ObjectIdentifier(stream)) != nil else {
        return (false, nil as StatisticsStream.Completion?)
      }
      defer { stream.completion = nil }
      return (true, stream.completion)
    }
    if isEnded { Recording.endStream() }
    completion?(nil)
  }

  /// Runs `body` while nothing is read; for tests.
  func whileStopped(_ body: () -> Void) { lock.withLock(body) }

  /// Whether a call waits for the end of an interval; for tests.
  func isAwaited(_ stream: StatisticsStream) -> Bool { withState { _ in stream.completion != nil } }

  // MARK: Present

  struct Present {
    var queues: [Inspection.Queue]
    var isCounting: Bool
    var waiting: [UInt: Int] = [:]
    var running: [UInt: Int] = [:]
  }

  /// The queues that are recorded, with their depths; nil if none are.
  func present() -> Present? {
    if isInherited { return nil }
    return withState { state in
      let stream = state.streams.values.min { $0.start < $1.start }
      if stream != nil {
        Self.count(&state, before: Clock.uptime())
      } else {
        // A flight recorder, or an earlier stream.
        state.reader = nil
        guard Self.findReader(&state) else { return nil }
        state.reader?.skipPast()
      }
      _ = Self.poll(&state)
      guard let names = state.reader?.latestNames else { return nil }
      var present = Present(
        queues: names.map { Inspection.Queue(UInt($0.queue), $0) }, isCounting: stream != nil)
      guard let stream else { return present }
      let items = stream.counts.items
      for (queue, count) in items.waiting { present.waiting[UInt(queue)] = count }
      for (queue, count) in items.running { present.running[UInt(queue)] = count }
      return present
    }
  }

  // MARK: The thread

  /// An interval that has ended, and the call that waits for it.
  private struct Due {
    let completion: StatisticsStream.Completion
    let interval: EventInterval
    let names: [UInt64: RecordedName]
  }

  private static func startThread() -> Bool {
    0
      == Runtime.startThread(
        { _ in
          SystemThread.setName("concourse-stats")
          StatisticsReader.shared.run()
          return nil
        }, nil)
  }

  private func run() {
    var microseconds: UInt32 = 1000
    while true {
      SystemThread.sleep(microseconds: microseconds)
      let (due, isLast) = withState { state -> ([Due], Bool) in
        if state.streams.isEmpty {
          state.hasThread = false
          state.reader = nil
          return ([], true)
        }
        let now = Clock.uptime()
        microseconds = Self.read(&state, microseconds)
        return (Self.finish(&state, now, &microseconds), false)
      }
      for due in due { due.completion(Inspection.Statistics(due.interval, due.names)) }
      if isLast { return }
    }
  }

  /// Takes events out of the rings, and counts them now and then, so that they do not pile up.
  /// - Returns: how long to sleep.
  private static func read(_ state: inout State, _ microseconds: UInt32) -> UInt32 {
    let now = Clock.uptime()
    guard poll(&state), let reader = state.reader else { return 5000 }
    let factor = reader.fill > 0.1 ? 0.2 / reader.fill : 2
    if now > state.lastPart + 100_000_000 { add(&state, before: now) }
    return UInt32(min(max(Double(microseconds) * factor, 1000), 50_000))
  }

  /// Ends the intervals that have passed and that a caller waits for. Else they become longer: nothing is buffered.
  private static func finish(_ state: inout State, _ now: UInt64, _ microseconds: inout UInt32)
    -> [Due]
  {
    var due: [Due] = []
    var isCounted = false
    for stream in state.streams.values {
      guard let completion = stream.completion else { continue }
      if now >= stream.end {
        if !isCounted { count(&state, before: now) }
        isCounted = true
        stream.completion = nil
        due.append(Due(completion: completion, interval: stream.finish(at: now), names: stream.counts.names))
      }
      // A client that asks at once for the next interval gets it in time.
      microseconds = min(microseconds, max(1000, UInt32(clamping: (stream.end - now) / 1000 + 1)))
    }
    return due
  }

  // MARK: Events

  /// Reads all events before `time`, and counts them.
  private static func count(_ state: inout State, before time: UInt64) {
    guard poll(&state) else { return }
    add(&state, before: time)
  }

  /// Reads what the rings have.
  private static func poll(_ state: inout State) -> Bool {
    guard findReader(&state), let reader = state.reader else { return false }
    reader.poll()
    reader.clocks = Recording.clocks
    return true
  }

  private static func add(_ state: inout State, before time: UInt64) {
    guard let reader = state.reader else { return }
    state.lastPart = time
    reader.missed = Recording.missed &- state.missedBefore
    let recording = reader.take()
    state.lost = recording.lost
    for stream in state.streams.values { stream.add(recording, before: time) }
  }

  /// - Returns: whether the process has made the memory of its recording.
  private static func findReader(_ state: inout State) -> Bool {
    if state.reader != nil { return true }
    guard let memory = Recording.memory else { return false }
    state.reader = try? RecordingReader(OwnMemory(start: memory), readsModules: false)
    return state.reader != nil
  }

  /// The memory of the recording, which is never unmapped.
  private struct OwnMemory: RecordingBytes {
    let start: UnsafeRawPointer

    func read(at offset: UInt64, count: Int) -> [UInt8]? {
      [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        // SAFETY: an array of bytes begins at a multiple of 16; the reader asks for whole words only.
        let words = UnsafeMutableRawBufferPointer(buffer).bindMemory(to: UInt64.self)
        Recording.copy(start + Int(offset), into: words)
        filled = count
      }
    }
  }
}

/// The statistics that one client asks for.
package final class StatisticsStream {
  package typealias Completion = (Inspection.Statistics?) -> Void

  private let interval: UInt64
  let start: UInt64

  // GUARDED BY the lock of `StatisticsReader`.
  fileprivate var counts: EventStatistics
  /// When the interval may end.
  fileprivate var end: UInt64
  /// Of the call that waits for it.
  fileprivate var completion: Completion?

  fileprivate init(_ interval: UInt64, start: UInt64, lost: UInt64, names: [RecordedName]) {
    (self.interval, self.start) = (min(interval, 1 << 62), start)
    counts = EventStatistics(start: start, lost: lost, names: names)
    end = start &+ self.interval
  }

  fileprivate func add(_ recording: RecordedRun, before time: UInt64) { counts.add(recording, before: time) }

  fileprivate func finish(at time: UInt64) -> EventInterval {
    end = time &+ interval
    return counts.finish(at: time)
  }

  // MARK: Use

  /// - Parameter interval: nanoseconds.
  package static func begin(every interval: UInt64) -> StatisticsStream? {
    StatisticsReader.shared.begin(every: interval)
  }

  /// Whether the process can have statistics; not in a forked child.
  package static var arePossible: Bool { StatisticsReader.shared.isPossible }

  /// Calls `completion` once: on the reader's thread, or at once, with nil, if the stream has ended.
  /// - Returns: false if another call waits.
  @discardableResult
  package func next(_ completion: @escaping Completion) -> Bool {
    StatisticsReader.shared.next(self, completion)
  }

  /// Blocks the calling thread until the interval has passed; a worker is replaced meanwhile.
  /// - Returns: nil if another call waits; nil within if the stream has ended.
  package func wait() -> Inspection.Statistics?? {
    let came = DispatchSemaphore(value: 0)
    let result = Result()
    let isFirst = next {
      result.statistics = $0
      came.signal()
    }
    guard isFirst else { return nil }
    came.wait()
    return .some(result.statistics)
  }

  // SAFETY: the semaphore orders the accesses.
  private final class Result: @unchecked Sendable {
    var statistics: Inspection.Statistics?
  }

  package func cancel() { StatisticsReader.shared.end(self) }
}

// SAFETY: the variables are GUARDED BY the reader's lock.
extension StatisticsStream: @unchecked Sendable {}
// SAFETY: the state is GUARDED BY the lock.
extension StatisticsReader: @unchecked Sendable {}
