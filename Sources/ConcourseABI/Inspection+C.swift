// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import CConcourseABI
internal import ConcourseInspection
internal import Glibc

// concourse/inspection.h

/// Copies a structure to a caller whose structure may be older or newer, and leaves its size as it is.
private func fill<Structure>(_ room: UnsafeMutableRawPointer, _ size: Int, _ structure: Structure) {
  let header = MemoryLayout<Int>.size
  withUnsafeBytes(of: structure) { bytes in
    let count = min(size, bytes.count)
    memset(room + header, 0, size - header)
    memcpy(room + header, bytes.baseAddress! + header, count - header)
  }
}

/// The size that the caller has set; traps if it cannot be one.
private func size(_ room: UnsafeMutableRawPointer?, _ function: StaticString) -> Int {
  guard let room else { Reject.null(function, "structure") }
  let size = room.load(as: UInt.self)
  guard size >= 16, size <= 1 << 16, size % 8 == 0 else {
    ClientBug.trap(
      726, "\(function): the structure says that its size is \(size); set its first field to its size")
  }
  return Int(size)
}

/// As many elements as fit into the caller's array, whose first element says how large each is.
private func fill<Element, Structure>(
  _ array: UnsafeMutableRawPointer?, _ capacity: UInt, _ elements: [Element], _ function: StaticString,
  _ convert: (Element) -> Structure
) -> UInt {
  if capacity > 0 {
    let size = size(array, function)
    for (index, element) in elements.prefix(Int(clamping: capacity)).enumerated() {
      let place = array! + index * size
      place.storeBytes(of: UInt(size), as: UInt.self)
      fill(place, size, convert(element))
    }
  }
  return UInt(elements.count)
}

/// Copies a label, cut off at a character if it is too long. The room is zero.
private func copy<Room>(_ label: String, into room: inout Room) {
  withUnsafeMutableBytes(of: &room) { room in
    var label = label
    label.withUTF8 {
      let text = UnsafeRawBufferPointer($0)
      room.copyBytes(from: text.prefix(text.wholeCharacters(within: room.count - 1)))
    }
  }
}

// MARK: Snapshots

@c(concourse_inspect_pool)
package func concourse_inspect_pool(_ pool: UnsafeMutableRawPointer?) {
  let size = size(pool, "concourse_inspect_pool")
  let now = Inspection.Pool.read()
  let waiting = now.bands.reduce(0) { $0 + $1.waiting }
  fill(
    pool!, size,
    concourse_pool(
      size: 0, width: Int64(now.width), limit: Int64(now.limit), threads: Int64(now.threads),
      active: Int64(now.active), blocked: Int64(now.blocked), parked: Int64(now.parked),
      searching: Int64(now.searching), waiting: Int64(waiting), stuck: Int64(now.blocked - waiting)))
}

@c(concourse_inspect_blocked_threads)
package func concourse_inspect_blocked_threads(_ threads: UnsafeMutableRawPointer?, _ capacity: UInt) -> UInt
{
  fill(threads, capacity, Inspection.BlockedThread.all(), "concourse_inspect_blocked_threads") { blocked in
    var structure = concourse_blocked_thread()
    structure.thread = blocked.thread
    structure.reason = UInt32(blocked.reason.rawValue)
    structure.since = blocked.since.uptimeNanoseconds
    structure.queue = UInt64(blocked.queue ?? 0)
    copy(blocked.label, into: &structure.label)
    return structure
  }
}

@c(concourse_inspect_queues)
package func concourse_inspect_queues(_ queues: UnsafeMutableRawPointer?, _ capacity: UInt) -> UInt {
  fill(queues, capacity, Inspection.knownQueues(), "concourse_inspect_queues") { queue in
    var structure = concourse_queue()
    structure.id = UInt64(queue.id)
    structure.target = UInt64(queue.target ?? 0)
    structure.kind = UInt32(queue.kind.rawValue)
    structure.waiting = Int64(queue.waiting ?? -1)
    structure.running = Int64(queue.running ?? -1)
    copy(queue.label, into: &structure.label)
    return structure
  }
}

// MARK: Statistics

/// What a `concourse_statistics_t` points to.
private final class Statistics {
  let stream: StatisticsStream
  private let lock = Lock(.statistics)
  // GUARDED BY `lock`.
  private var last: Inspection.Statistics?

  /// The interval that was returned last.
  var latest: Inspection.Statistics? {
    get { lock.withLock { last } }
    set {
      // The former one is released after unlocking.
      var value = newValue
      lock.withLock { swap(&last, &value) }
    }
  }

  init(_ stream: StatisticsStream) { self.stream = stream }

  static func at(_ reference: UnsafeMutableRawPointer?, _ function: StaticString) -> Statistics {
    guard let reference else { Reject.null(function, "stream") }
    // SAFETY: by the contract of the C interface.
    return Unmanaged<Statistics>.fromOpaque(reference).takeUnretainedValue()
  }
}

@c(concourse_statistics_begin)
package func concourse_statistics_begin(_ interval: UInt64) -> UnsafeMutableRawPointer? {
  guard let stream = StatisticsStream.begin(every: interval) else {
    errno = StatisticsStream.arePossible ? EAGAIN : ENOTSUP
    return nil
  }
  return Unmanaged.passRetained(Statistics(stream)).toOpaque()
}

@c(concourse_statistics_next)
package func concourse_statistics_next(
  _ stream: UnsafeMutableRawPointer?, _ statistics: UnsafeMutableRawPointer?
) -> Int32 {
  let function: StaticString = "concourse_statistics_next"
  let (handle, size) = (Statistics.at(stream, function), size(statistics, function))
  guard let outcome = handle.stream.wait() else {
    errno = EBUSY
    return -1
  }
  guard let interval = outcome else {
    errno = ECANCELED
    return -1
  }
  handle.latest = interval
  fill(
    statistics!, size,
    concourse_statistics(
      size: 0, start: interval.start.uptimeNanoseconds, end: interval.end.uptimeNanoseconds,
      queues: UInt64(interval.queues.count), running: interval.running.clampedNanoseconds,
      parked: UInt64(interval.parked), woken: UInt64(interval.woken),
      threads_made: UInt64(interval.threadsMade),
      events: UInt64(interval.events), lost: UInt64(interval.lost)))
  return 0
}

@c(concourse_statistics_queue)
package func concourse_statistics_queue(
  _ stream: UnsafeMutableRawPointer?, _ index: UInt, _ queue: UnsafeMutableRawPointer?
) -> Int32 {
  let function: StaticString = "concourse_statistics_queue"
  let (handle, size) = (Statistics.at(stream, function), size(queue, function))
  guard let queues = handle.latest?.queues, index < UInt(queues.count) else {
    errno = EINVAL
    return -1
  }
  let of = queues[Int(index)]
  var structure = concourse_queue_statistics()
  structure.id = UInt64(of.queue.id)
  structure.target = UInt64(of.queue.target ?? 0)
  structure.kind = UInt32(of.queue.kind.rawValue)
  structure.waiting = Int64(of.queue.waiting ?? -1)
  structure.running = Int64(of.queue.running ?? -1)
  (structure.submitted, structure.started) = (UInt64(of.submitted), UInt64(of.started))
  structure.ended = UInt64(of.ended)
  structure.busy = of.busy.clampedNanoseconds
  structure.wait = concourse_durations(of.wait)
  structure.run = concourse_durations(of.run)
  structure.sync_wait = concourse_durations(of.syncWait)
  copy(of.queue.label, into: &structure.label)
  fill(queue!, size, structure)
  return 0
}

extension concourse_durations {
  fileprivate init(_ durations: Inspection.Durations) {
    self.init(
      count: UInt64(durations.count), total: durations.total.clampedNanoseconds,
      longest: durations.longest.clampedNanoseconds, median: durations.median?.clampedNanoseconds ?? 0,
      percentile_99: durations.percentile(0.99)?.clampedNanoseconds ?? 0, reserved: (0, 0, 0))
  }
}

@c(concourse_statistics_end)
package func concourse_statistics_end(_ stream: UnsafeMutableRawPointer?) {
  Statistics.at(stream, "concourse_statistics_end").stream.cancel()
}

@c(concourse_statistics_release)
package func concourse_statistics_release(_ stream: UnsafeMutableRawPointer?) {
  guard let stream else { return }
  // SAFETY: as above.
  Unmanaged<Statistics>.fromOpaque(stream).takeRetainedValue().stream.cancel()
}
