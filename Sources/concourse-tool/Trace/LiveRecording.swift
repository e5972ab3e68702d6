import ConcourseRecording
import Glibc

/// The recording of a running process, which another process switches on: two of its words are written, and its memory
/// is read. It goes on for a second after the last `poll`, so a command that is killed leaves nothing behind.
final class LiveRecording {
  private static let grace: UInt64 = 1_000_000_000

  let process: Int32
  let name: String
  private let memory: LiveMemory
  /// The address of the engine's `concourse_recording`.
  private let record: UInt64
  /// The address of the word that switches events on.
  private let word: UInt64
  /// The last deadline that this command has written.
  private var deadline: UInt64 = 0
  /// When the process began: another one may get its number.
  private let begun: Substring?
  private let missedBefore: UInt64

  init(_ process: Int32) throws(RecordingFailure) {
    let target: TargetProcess
    do { target = try TargetProcess.live(process, readsThreads: false) } catch {
      throw RecordingFailure(error.reason)
    }
    self.process = process
    name = target.name
    memory = LiveMemory(process: target.alive)
    let described = "process \(process) (\(name))"
    let memory = memory
    let found = MappedImage.all(of: target).lazy.flatMap(\.notes).compactMap {
      EngineNote.record(4, in: $0, memory)
    }.first
    guard let found, let layout: UInt32 = memory.number(at: found) else {
      throw RecordingFailure(
        "\(described) \(TargetProcess.isAlive(process) ? "does not run on Concourse" : "has ended")")
    }
    guard layout == RecordingLayout.version, let word: UInt64 = memory.number(at: found + 8) else {
      throw RecordingFailure(
        "\(described) runs on another version of Concourse: its recordings have layout \(layout), this command "
          + "reads layout \(RecordingLayout.version)")
    }
    // Before the loader has relocated the library, its pointers lead nowhere.
    guard let _: UInt32 = memory.number(at: word) else {
      throw RecordingFailure("\(described) has not loaded Concourse yet")
    }
    (record, self.word) = (found, word)
    begun = Self.begin(of: process)
    missedBefore = memory.number(at: found + 40) ?? 0
    // Of an earlier recording.
    if try findReader() { reader?.skipPast() }
  }

  deinit { end() }

  /// Nil before the first event.
  private(set) var reader: RecordingReader?

  /// Reads what has been recorded since the last call, and asks for events during the next second.
  /// - Returns: false if the process has ended.
  func poll() throws(RecordingFailure) -> Bool {
    guard isThere else { return false }
    if !isFlightRecorder {
      // Another command has switched events off, or this one was stopped for too long.
      let isOff = memory.number(at: word + 4) == UInt32(0) || UptimeClock.now > deadline
      if deadline > 0 && isOff { reader?.pauses.append(UptimeClock.now) }
      deadline = UptimeClock.now + Self.grace
      memory.write(deadline, at: record + 16)
      memory.write(UInt32(1), at: word + 4)
    }
    if reader == nil { _ = try findReader() }
    reader?.watchedUntil = UptimeClock.now
    return reader.map { $0.poll() || isThere && $0.poll() } ?? true
  }

  /// Whether the record is where it was. The process may have ended, or run another program. If the thread has ended
  /// through which the memory was read, as the main thread may before the others, another one is taken.
  private var isThere: Bool {
    if hasRecord { return true }
    guard let thread = TargetProcess.thread(of: process), thread != memory.process else { return false }
    memory.process = thread
    return hasRecord
  }

  private var hasRecord: Bool {
    let size: UInt32 = 48
    return memory.number(at: record) == RecordingLayout.version && memory.number(at: record + 4) == size
      && memory.number(at: record + 8) == word && Self.begin(of: process) == begun
  }

  private static func begin(of process: Int32) -> Substring? {
    // The name of the program, in parentheses, may have spaces.
    let fields = ProcFile.read("/proc/\(process)/stat")?.split(separator: ")").last?.split(separator: " ")
    return fields.flatMap { $0.count > 19 ? $0[19] : nil }
  }

  /// - Returns: whether the process has made the memory of its recording.
  private func findReader() throws(RecordingFailure) -> Bool {
    guard let start: UInt64 = memory.number(at: record + 24), start != 0 else { return false }
    reader = try RecordingReader(RemoteBytes(memory: memory, start: start))
    return true
  }

  /// Events while the process had no memory for them.
  var missed: UInt64 { (memory.number(at: record + 40) ?? missedBefore) &- missedBefore }

  /// Switches events off, unless a flight recorder or another command wants them.
  func end() {
    let isMine = isThere && memory.number(at: record + 16) == deadline
    if isMine { memory.write(UInt32(0), at: word + 4) }
  }

  /// Ends the recording of a program that `concourse trace` has started.
  func endFlightRecorder() {
    guard isThere, isFlightRecorder else { return }
    memory.write(UptimeClock.now, at: record + 16)
    memory.write(UInt32(0), at: word + 4)
  }

  /// A flight recorder has no deadline.
  var isFlightRecorder: Bool {
    memory.number(at: record + 16) == UInt64.max && memory.number(at: word + 4) == UInt32(1)
  }

  /// The memory of the process from an address on.
  private struct RemoteBytes: RecordingBytes {
    let memory: LiveMemory
    let start: UInt64

    func read(at offset: UInt64, count: Int) -> [UInt8]? { memory.bytes(at: start &+ offset, count: count) }
  }
}

extension LiveRecording {
  private static let microsecondsBetweenLooks: UInt32 = 2000

  /// Set by the interrupt key, and by what ends the command politely: the recording ends early, and is written.
  // SAFETY: one thread, and a signal handler that only stores to it.
  nonisolated(unsafe) private static var isInterrupted = false

  static func record(_ process: Int32, seconds: Double) throws(RecordingFailure) -> RecordingReader {
    let live = try LiveRecording(process)
    let signals = [SIGINT, SIGTERM, SIGHUP].filter { $0 != SIGHUP || !Terminal.isIgnored(SIGHUP) }
    for number in signals { signal(number) { _ in LiveRecording.isInterrupted = true } }
    // Writing what was recorded may take long; a second signal ends the command.
    defer { for number in signals { signal(number, SIG_DFL) } }
    defer { live.end() }
    let end = UptimeClock.now + UInt64(seconds * 1e9)
    while try live.poll() && UptimeClock.now < end && !isInterrupted { usleep(microsecondsBetweenLooks) }
    guard let reader = live.reader, reader.hasEvents else {
      if live.missed > 0 {
        throw RecordingFailure(
          "process \(process) (\(live.name)) has no memory for a recording, or is a forked child")
      }
      throw RecordingFailure("process \(process) (\(live.name)) has done nothing on its queues meanwhile")
    }
    reader.missed = live.missed
    return reader
  }
}
