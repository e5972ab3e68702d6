import CExploring
import CTracing
import Glibc

/// The file that the command shares with the exploring library in one run: what the run does, and what came of it.
///
/// The program may write anything into it, so numbers are checked before they are used as places.
package final class ExploringFile {
  /// More switches than that are only counted.
  package static let mostSwitches = 1 << 16
  /// Of a run that records, the last events.
  package static let mostEvents = 1 << 15

  /// F_ADD_SEALS, and against further seals, shrinking and growing.
  private static let addSeals: Int32 = 1033
  private static let seals: Int32 = 1 | 2 | 4
  /// More than any run has. Larger numbers are not the library's.
  private static let mostCounted: UInt64 = 1 << 40

  package let descriptor: Int32
  private let memory: UnsafeMutableRawPointer
  private let size: Int
  /// As this process wrote it: the program may have overwritten its own.
  private let layout: concourse_exploring_header

  /// nil without the memory.
  package convenience init?(_ schedule: Schedule) {
    self.init(switches: schedule.switches.count, events: schedule.records ? Self.mostEvents : 0)
    prepare(schedule)
  }

  /// A file for schedules of at most so many switches, which record at most so many events. nil without the memory.
  package init?(switches: Int, events: Int) {
    var header = concourse_exploring_header()
    let end = concourse_exploring_lay_out(
      &header, UInt64(switches), UInt64(Self.mostSwitches), UInt64(events))
    layout = header
    size = Int(end)
    descriptor = tracing_shared_file()
    guard descriptor >= 0 else { return nil }
    // The program cannot take the memory away, which would end the command.
    guard ftruncate(descriptor, off_t(size)) == 0, fcntl(descriptor, Self.addSeals, Self.seals) == 0,
      let mapped = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), mapped != MAP_FAILED
    else {
      close(descriptor)
      return nil
    }
    memory = mapped
    // SAFETY: the mapping is larger than the header.
    memory.storeBytes(of: header, as: concourse_exploring_header.self)
  }

  /// Writes what the next run does, and clears what came of the last one.
  package func prepare(_ schedule: Schedule) {
    var header = layout
    header.follow_count = min(UInt64(schedule.switches.count), layout.follow_count)
    header.events_capacity = schedule.records ? layout.events_capacity : 0
    header.strategy =
      switch schedule.strategy {
      case nil: CONCOURSE_EXPLORING_FOLLOW.rawValue
      case .random: CONCOURSE_EXPLORING_RANDOM.rawValue
      case .pct: CONCOURSE_EXPLORING_PCT.rawValue
      case .pos: CONCOURSE_EXPLORING_POS.rawValue
      }
    header.depth = schedule.depth
    header.seed = schedule.seed
    header.expected_steps = schedule.expectedSteps
    header.step_limit = schedule.stepLimit
    header.real_time = schedule.isRealTime ? 1 : 0
    header.wants_frames = schedule.records ? 1 : 0
    header.ends_process = schedule.endsProcess ? 1 : 0
    // SAFETY: the mapping is of this size, and the header and the switches are at the places that the layout names.
    memory.storeBytes(of: header, as: concourse_exploring_header.self)
    for (index, change) in schedule.switches.prefix(Int(header.follow_count)).enumerated() {
      let entry = concourse_exploring_switch(thread: change.thread, next: change.next, point: change.point)
      memory.storeBytes(
        of: entry, toByteOffset: Int(header.follow_offset) + index * MemoryLayout.stride(ofValue: entry),
        as: concourse_exploring_switch.self)
    }
  }

  deinit {
    munmap(memory, size)
    close(descriptor)
  }

  /// A copy, while the program may still write.
  package var header: concourse_exploring_header {
    // SAFETY: inside the mapping. Each field is a word of its own, and a torn copy is only looked at for `outcome`.
    var header = memory.load(as: concourse_exploring_header.self)
    header.steps = min(header.steps, Self.mostCounted)
    header.made_count = min(header.made_count, Self.mostCounted)
    header.event_count = min(header.event_count, Self.mostCounted)
    header.thread_count = min(header.thread_count, UInt32(CONCOURSE_EXPLORING_THREADS))
    return header
  }

  package var outcome: UInt32 { header.outcome }

  /// The first `count` switches that were made, as far as there was room.
  package func made(_ count: UInt64) -> [ScheduleSwitch] {
    table(layout.made_offset, Int(min(count, layout.made_capacity)), concourse_exploring_switch.self).map {
      ScheduleSwitch(thread: $0.thread, next: $0.next, point: $0.point)
    }
  }

  /// The last events of `count`, with the number of the first.
  package func events(_ count: UInt64) -> (first: UInt64, events: [concourse_exploring_event]) {
    let capacity = layout.events_capacity
    let kept = min(count, capacity)
    guard kept > 0 else { return (count, []) }
    let all = table(layout.events_offset, Int(capacity), concourse_exploring_event.self)
    return (count - kept, (count - kept..<count).map { all[Int($0 % capacity)] })
  }

  package func threads(_ count: UInt32) -> [concourse_exploring_thread] {
    table(
      layout.threads_offset, min(Int(count), CONCOURSE_EXPLORING_THREADS), concourse_exploring_thread.self)
  }

  private func table<Entry: BitwiseCopyable>(_ offset: UInt64, _ count: Int, _: Entry.Type) -> [Entry] {
    // SAFETY: offset and capacity are this process's own, so the table is inside the mapping.
    (0..<count).map {
      memory.load(fromByteOffset: Int(offset) + $0 * MemoryLayout<Entry>.stride, as: Entry.self)
    }
  }
}

extension concourse_exploring_event {
  package var addresses: [UInt64] { Self.list(frames, Int(frame_count)) }

  fileprivate static func list<Tuple>(_ frames: Tuple, _ count: Int) -> [UInt64] {
    // SAFETY: the tuple is an array of the C structure, of 64-bit numbers.
    withUnsafeBytes(of: frames) { Array($0.bindMemory(to: UInt64.self).prefix(count)) }
  }
}

extension concourse_exploring_access {
  package var addresses: [UInt64] { concourse_exploring_event.list(frames, Int(frame_count)) }
}

extension concourse_exploring_thread {
  package var addresses: [UInt64] { concourse_exploring_event.list(frames, Int(frame_count)) }
}
