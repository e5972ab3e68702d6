internal import CConcourse
internal import Glibc

/// Records what the engine does: items, waits, threads, timers and sources.
///
/// Each caller first looks at `isOn`: one load and one branch that is mostly not taken. Everything else is behind it,
/// and so are the static probes.
package enum Recording {
  /// The kind of a record. The numbers are part of the layout that other processes read.
  enum Event: UInt8 {
    /// The ring has another owner. Object: the thread; function: the former owner.
    case threadBegan = 1
    case threadEnded
    /// Object: the queue; function: what the item calls.
    case submitted, started, ended
    /// Object: what the thread waits for; the node is the kind of wait.
    case waitBegan, waitEnded
    /// Object: the level of the worker's band.
    case made, parked, woken
    /// Object: the timer, or the queue of a delayed submission.
    case timer
    /// Object: the source; function: the value. Node: the kind from bit 48 on, and the address of its queue.
    case source
    /// A part of the name of the task that the thread runs, of Swift Concurrency: object and function are 16 bytes of the
    /// text. Node: the task's number, and in the lowest byte that of the part.
    case taskName
    /// A delayed submission is asked for; `submitted` follows when its time has come. Operands as of `submitted`.
    case scheduled
  }

  /// What a thread waits for. The numbers are part of the layout.
  package enum Wait: UInt8 {
    case sync = 1
    case mainQueue, group, semaphore, workItem, once, parallelLoop, sourceCancellation
    case opening, reading, writing
  }

  /// Whether events are wanted, or a tracer is attached to a probe.
  @inline(__always)
  package static var isOn: Bool { _slowPath(concourse_is_recording_or_traced()) }

  // MARK: On and off

  /// Begins to record if the environment says so: `CONCOURSE_RECORDER` is the number of events that each thread keeps.
  static func beginIfAsked() {
    guard let number = setting("CONCOURSE_RECORDER") else { return }
    if let parent = setting("CONCOURSE_RECORDER_PARENT"), parent != "\(getppid())" { return }
    guard let capacity = Int(number), capacity > 0 else {
      return Trap.warn("CONCOURSE_RECORDER is \"\(number)\"; it must be a number of events")
    }
    let folder = setting("CONCOURSE_RECORDER_DIR") ?? setting("TMPDIR") ?? "."
    let isKept = setting("CONCOURSE_RECORDER_KEEP") != nil
    let flight = RecordingMemory.Flight(capacity: capacity, folder: folder, isKept: isKept)
    guard RecordingMemory.make(for: flight) != nil else { return }
    begin(until: .max)
  }

  private static func setting(_ name: String) -> String? {
    concourse_recorder_setting(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Begins to record, until an event after `uptime`.
  static func begin(until uptime: UInt64) {
    concourse_set_recording_until(uptime)
    concourse_set_recording(true)
  }

  static func end() { concourse_set_recording(false) }

  // MARK: For the process itself

  /// Begins to record for a reader in this process. Each call needs its `endStream`.
  /// - Returns: false if it is not possible, the system refuses the memory, or there are 65,535 readers.
  package static func beginStream() -> Bool {
    guard isPossible else { return false }
    // Else the events of other threads are missed while one makes the memory.
    if concourse_recording_memory() == nil { RecordingMemory.make(for: nil) }
    return !RecordingMemory.wasRefused && concourse_begin_stream()
  }

  /// False in a forked child, which has no threads, or whose memory may be its parent's file.
  package static var isPossible: Bool { !Process.isForkedChild && !RecordingMemory.isForgotten }

  /// Not in a child that was forked after `beginStream`, which has forgotten it.
  package static func endStream() { concourse_end_stream() }

  /// Where the records are; nil before the first event.
  package static var memory: UnsafeRawPointer? { concourse_recording_memory().map { UnsafeRawPointer($0) } }

  /// Events while there was no memory for them.
  package static var missed: UInt64 { concourse_recording_missed() }

  /// The time of records and uptime, read now.
  package static var clocks: (ticks: UInt64, uptime: UInt64) { RecordingMemory.clocks }

  /// Copies a part of the memory while other threads write it. Offset and count are multiples of 8.
  package static func copy(_ source: UnsafeRawPointer, into words: UnsafeMutableBufferPointer<UInt64>) {
    guard let start = words.baseAddress else { return }
    concourse_copy_recording(start, source.assumingMemoryBound(to: UInt64.self), words.count)
  }

  // MARK: Items

  /// Records the name of a queue; `kind` is its `ObjectKind`.
  /// - Parameter isMade: whether the caller makes the queue. Without a label, the calls on its stack are recorded.
  /// - Returns: false if it must be recorded later.
  static func name(_ queue: UInt, _ text: String, kind: UInt8, target: UInt, isMade: Bool) -> Bool {
    concourse_is_recording() && RecordingMemory.name(queue, text, kind: kind, target: target, isMade: isMade)
  }

  @inline(__always)
  static func submitted(_ queue: UInt, node: UInt, function: UInt) {
    concourse_probe_submitted(UInt64(queue), UInt64(node), UInt64(function))
    RecordingMemory.nameTask()
    write(.submitted, node, queue, function)
  }

  static func scheduled(_ queue: UInt, node: UInt, function: UInt) {
    RecordingMemory.nameTask()
    write(.scheduled, node, queue, function)
  }

  @inline(__always)
  static func started(_ queue: UInt, node: UInt, function: UInt) {
    concourse_probe_started(UInt64(queue), UInt64(node), UInt64(function))
    write(.started, node, queue, function)
  }

  @inline(__always)
  static func ended(_ queue: UInt, node: UInt, function: UInt) {
    concourse_probe_ended(UInt64(queue), UInt64(node), UInt64(function))
    write(.ended, node, queue, function)
  }

  // MARK: Waits

  /// Runs `sleep`, and records that the calling thread waits meanwhile.
  @inline(__always)
  static func wait<Result>(_ wait: Wait, _ object: UnsafeRawPointer?, _ sleep: () -> Result) -> Result {
    beginWait(wait, object)
    defer { endWait(wait, object) }
    return sleep()
  }

  @inline(__always)
  static func beginWait(_ wait: Wait, _ object: UnsafeRawPointer?) { if isOn { waitBegan(wait, object) } }

  @inline(__always)
  static func endWait(_ wait: Wait, _ object: UnsafeRawPointer?) { if isOn { waitEnded(wait, object) } }

  @inline(never)
  private static func waitBegan(_ wait: Wait, _ object: UnsafeRawPointer?) {
    concourse_probe_wait_begun(UInt64(UInt(bitPattern: object)), UInt64(wait.rawValue), 0)
    RecordingMemory.nameTask()
    write(.waitBegan, UInt(wait.rawValue), UInt(bitPattern: object), 0)
  }

  @inline(never)
  private static func waitEnded(_ wait: Wait, _ object: UnsafeRawPointer?) {
    concourse_probe_wait_ended(UInt64(UInt(bitPattern: object)), UInt64(wait.rawValue), 0)
    write(.waitEnded, UInt(wait.rawValue), UInt(bitPattern: object), 0)
  }

  // MARK: Threads

  /// Records that the calling thread is a new worker of the band for `level`.
  @inline(never)
  static func threadMade(_ level: QoSLevel) {
    concourse_probe_thread_made(UInt64(level.rawValue), 0, 0)
    write(.made, 0, UInt(level.rawValue), 0)
  }

  @inline(never)
  static func threadParked() {
    concourse_probe_thread_parked(0, 0, 0)
    write(.parked, 0, 0, 0)
  }

  @inline(never)
  static func threadWoken() {
    concourse_probe_thread_woken(0, 0, 0)
    write(.woken, 0, 0, 0)
  }

  /// Gives the calling thread's ring back. Called when the thread exits.
  static func threadEnds() {
    guard let ring = CurrentThread.state.pointee.recording else { return }
    write(.threadEnded, 0, UInt(ring.pointee.thread), 0)
    CurrentThread.state.pointee.recording = nil
    RecordingMemory.giveBack(ring)
  }

  // MARK: Events

  @inline(never)
  package static func timerFired(_ object: UnsafeRawPointer) { write(.timer, 0, UInt(bitPattern: object), 0) }

  @inline(never)
  package static func sourceRaised(_ object: UnsafeRawPointer, value: UInt, kind: UInt8, queue: UInt) {
    write(.source, UInt(kind) << 48 | queue & (1 << 48 - 1), UInt(bitPattern: object), value)
  }

  // MARK: Records

  /// Appends a record to the calling thread's ring, in place of the oldest if the ring is full.
  @inline(__always)
  private static func write(_ event: Event, _ node: UInt, _ object: UInt, _ function: UInt) {
    guard concourse_is_recording() else { return }
    RecordingMemory.append(
      UInt64(event.rawValue) << 56 | UInt64(node) & (1 << 56 - 1), UInt64(object), UInt64(function))
  }
}
