internal import CConcourse
internal import Glibc

/// The memory that the records are in: a header, a ring for each thread, the names of queues, the list of modules.
///
/// It is private memory that `concourse trace` reads from outside or, for the flight recorder, a shared mapping of a
/// file, which survives the process however that ends. It is made when the first event is recorded, and never unmapped.
enum RecordingMemory {
  private typealias Header = concourse_recording_header

  private enum Limits {
    static let rings = 256
    static let names = 8192
    static let moduleBytes = 256 << 10
    static let taskNameBytes = 96
    /// Records of a ring, unless the flight recorder asks for another number.
    static let capacity = 32768
    static let capacities = 64...(1 << 20)
  }

  /// Of the flight recorder: how many records a ring has, and the file.
  struct Flight {
    let capacity: Int
    let folder: String
    /// Whether the file stays when the process exits normally.
    let isKept: Bool
  }

  // SAFETY: all are written by the thread that makes the memory, before it publishes it, and by a forked child,
  // which has one thread.
  nonisolated(unsafe) private static var mask: UInt64 = 0
  nonisolated(unsafe) private static var hasSteadyTicks = false
  nonisolated(unsafe) private static var identity = concourse_file_identity()
  /// Of the flight recorder's file.
  // SAFETY: as above.
  nonisolated(unsafe) private static var path: UnsafeMutablePointer<CChar>?
  /// The process that has made the file.
  // SAFETY: as above.
  nonisolated(unsafe) private static var owner: pid_t = 0

  /// Whether a thread makes the memory, or has failed to.
  private static let isBegun = Atomic<Bool>(false)
  /// The number of loads when the list of modules was written last, and whether a thread writes it now.
  private static let modulesSeen = Atomic<UInt64>(0)
  private static let isNotingModules = Atomic<Bool>(false)
  /// Rings whose threads have ended.
  private static let freeRings = Atomic<Int>(0)
  /// Whether the file has no room for another ring.
  private static let isFull = Atomic<Bool>(false)

  /// nil until `make` has published it, and with it the variables above.
  private static var header: UnsafeMutablePointer<Header>? { concourse_recording_memory() }

  // MARK: Records

  /// How many ticks or nanoseconds may pass on a thread before it reads both clocks again.
  private static let clockPeriod: UInt64 = 2_000_000

  private static var now: UInt64 {
    @inline(__always) get { hasSteadyTicks ? concourse_ticks() : Clock.uptime() }
  }

  /// Both clocks at one time. The narrowest of a few readings: between the two of one the thread may be preempted, and
  /// readers extrapolate from the first two readings of a recording, which may be microseconds apart.
  ///
  /// Not optimized: two builds of the packages differed in the order of two of its instructions.
  @_optimize(none)
  static var clocks: (ticks: UInt64, uptime: UInt64) {
    var best: (width: UInt64, ticks: UInt64, uptime: UInt64) = (.max, 0, 0)
    for _ in 0..<5 {
      let (before, uptime, after) = (now, Clock.uptime(), now)
      let width = after &- before
      if width < best.width { best = (width, before &+ width / 2, uptime) }
      if width < clockPeriod / 1000 { break }
    }
    return (best.ticks, best.uptime)
  }

  /// Appends a record to the calling thread's ring.
  @inline(__always)
  static func append(_ eventAndNode: UInt64, _ object: UInt64, _ function: UInt64) {
    guard let ring = CurrentThread.state.pointee.recording ?? takeRing() else { return }
    let ticks = now
    // Also when the processor's counter has gone back.
    if ticks &- ring.pointee.ticks > clockPeriod { readClocks(ring) }
    concourse_event_ring_append(ring, mask, ticks, eventAndNode, object, function)
  }

  /// Lets readers relate ticks and uptime, and ends a recording that no tool wants any more.
  @inline(never)
  private static func readClocks(_ ring: UnsafeMutablePointer<concourse_event_ring>) {
    let (ticks, uptime) = clocks
    concourse_event_ring_set_clocks(ring, ticks, uptime)
    concourse_end_expired_recording(uptime)
    if let header { noteModules(header) }
  }

  // MARK: Rings

  /// Gives the calling thread a ring.
  /// - Returns: nil if there is none; the event is then counted as lost.
  @inline(never)
  private static func takeRing() -> UnsafeMutablePointer<concourse_event_ring>? {
    guard let header = header ?? make(for: nil) else {
      concourse_count_missed()
      return nil
    }
    let id = CurrentThread.id
    // A thread that cannot give its ring back gets none.
    guard CurrentThread.watchExit(), let ring = claimRing(header, id) else {
      concourse_count_lost(header)
      return nil
    }
    let former = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16) { name in
      name.initialize(repeating: 0)
      concourse_get_thread_name(name.baseAddress!)
      return concourse_event_ring_set_owner(ring, id, name.baseAddress!)
    }
    readClocks(ring)
    CurrentThread.state.pointee.recording = ring
    concourse_event_ring_append(
      ring, mask, now, UInt64(Recording.Event.threadBegan.rawValue) << 56, UInt64(id), UInt64(former))
    return ring
  }

  private static func claimRing(_ header: UnsafeMutablePointer<Header>, _ id: UInt32)
    -> UnsafeMutablePointer<concourse_event_ring>?
  {
    let rings = (UnsafeMutableRawPointer(header) + Int(header.pointee.rings)).assumingMemoryBound(
      to: concourse_event_ring.self)
    // ORDERING: relaxed; only says whether to look. The claim is ordered.
    if freeRings.load(ordering: .relaxed) > 0 {
      let count = min(Int(header.pointee.ring_count), Limits.rings)
      if let found = (0..<count).first(where: { concourse_event_ring_claim(rings + $0, id) }) {
        // ORDERING: relaxed; as above.
        freeRings.wrappingSubtract(1, ordering: .relaxed)
        return rings + found
      }
    }
    // ORDERING: relaxed; spares a system call that will fail.
    if isFull.load(ordering: .relaxed) { return nil }
    let place = Int(concourse_take_place(&header.pointee.ring_count, UInt32(Limits.rings)))
    guard place < Limits.rings, prepare(rings + place, place, header) else { return nil }
    concourse_event_ring_take(rings + place, id)
    return rings + place
  }

  /// Makes room for the records of a ring that no thread has used.
  private static func prepare(
    _ ring: UnsafeMutablePointer<concourse_event_ring>, _ index: Int, _ header: UnsafeMutablePointer<Header>
  ) -> Bool {
    let size = (Int(mask) + 1) * MemoryLayout<concourse_event_record>.stride
    let offset = Int(header.pointee.records) + index * size
    // Writing to a hole of a file on a full disk would be fatal.
    if let path, withUnsafePointer(to: identity, { concourse_reserve(path, $0, header, offset, size) }) != 0 {
      // ORDERING: relaxed; see `claimRing`.
      isFull.store(true, ordering: .relaxed)
      return false
    }
    concourse_event_ring_set_records(
      ring, (UnsafeMutableRawPointer(header) + offset).assumingMemoryBound(to: concourse_event_record.self))
    return true
  }

  static func giveBack(_ ring: UnsafeMutablePointer<concourse_event_ring>) {
    concourse_event_ring_release(ring)
    // ORDERING: relaxed; see `claimRing`.
    freeRings.wrappingAdd(1, ordering: .relaxed)
  }

  /// Writes the list of modules again if the program has loaded any meanwhile.
  private static func noteModules(_ header: UnsafeMutablePointer<Header>) {
    let loaded = concourse_modules_loaded()
    // ORDERING: relaxed; a thread that finds an old number writes the list once more.
    guard modulesSeen.load(ordering: .relaxed) != loaded,
      // ORDERING: acquiring; pairs with the release below: one thread writes at a time.
      !isNotingModules.exchange(true, ordering: .acquiring)
    else { return }
    let list = UnsafeMutableRawPointer(header) + Int(header.pointee.modules)
    let length = concourse_modules(list.assumingMemoryBound(to: CChar.self), Limits.moduleBytes)
    concourse_set_module_count(header, UInt32(min(length, Limits.moduleBytes)))
    // ORDERING: relaxed; as above.
    modulesSeen.store(loaded, ordering: .relaxed)
    // ORDERING: releasing; pairs with the exchange above.
    isNotingModules.store(false, ordering: .releasing)
  }

  // MARK: Names

  /// Records the name of a queue. If it has none and is being made, records who makes it.
  /// - Returns: false if another thread is making the memory.
  static func name(_ queue: UInt, _ text: String, kind: UInt8, target: UInt, isMade: Bool) -> Bool {
    guard let header = header ?? make(for: nil) else { return false }
    let place = Int(concourse_take_place(&header.pointee.name_count, UInt32(Limits.names)))
    guard place < Limits.names else {
      concourse_count_lost_name(header, UInt64(queue))
      return true
    }
    let entry =
      (UnsafeMutableRawPointer(header) + Int(header.pointee.names)).assumingMemoryBound(
        to: concourse_queue_name.self) + place
    var name = concourse_queue_name()
    name.queue = UInt64(queue)
    name.ticks = now
    name.target = UInt64(target)
    name.kind = kind
    name.length = UInt16(
      withUnsafeMutableBytes(of: &name.text) { room in
        var text = text
        return text.withUTF8 { bytes in
          let count = UnsafeRawBufferPointer(bytes).wholeCharacters(within: room.count - 1)
          room.copyBytes(from: bytes.prefix(count))
          return count
        }
      })
    if isMade && text.isEmpty {
      name.frames = UInt32(
        withUnsafeMutableBytes(of: &name.text) { room in
          let words = room.bindMemory(to: UInt64.self)
          return concourse_return_addresses(words.baseAddress!, words.count)
        })
    }
    concourse_write_name(entry, &name)
    return true
  }

  /// Records the name of the task that the calling thread runs, unless it was the last one named here. The runtime tells
  /// it only of the running task, so it is recorded when the task submits an item or waits.
  @inline(never)
  static func nameTask() {
    var number: UInt64 = 0
    guard concourse_is_recording(), let name = concourse_current_task(&number),
      let ring = CurrentThread.state.pointee.recording ?? takeRing(), ring.pointee.task != number
    else { return }
    concourse_event_ring_set_task(ring, number)
    withUnsafeTemporaryAllocation(byteCount: Limits.taskNameBytes, alignment: 8) { text in
      text.initializeMemory(as: UInt8.self, repeating: 0)
      let bytes = UnsafeRawBufferPointer(start: name, count: strlen(name))
      text.copyBytes(from: bytes.prefix(bytes.wholeCharacters(within: text.count - 1)))
      for part in 0..<text.count / 16 {
        append(
          UInt64(Recording.Event.taskName.rawValue) << 56 | number << 8 | UInt64(part),
          text.load(fromByteOffset: part * 16, as: UInt64.self),
          text.load(fromByteOffset: part * 16 + 8, as: UInt64.self))
        if text[part * 16 + 15] == 0 { break }
      }
    }
  }

  // MARK: Making the memory

  /// - Returns: nil if the system refuses the memory, or another thread is making it; the event is then lost.
  @inline(never)
  @discardableResult
  static func make(for flight: Flight?) -> UnsafeMutablePointer<concourse_recording_header>? {
    // ORDERING: relaxed; only decides which thread makes the memory.
    guard !isBegun.exchange(true, ordering: .relaxed) else { return nil }
    let capacity = (flight?.capacity ?? Limits.capacity).roundedUpToPowerOf2(within: Limits.capacities)
    let rings = Int(CONCOURSE_RECORDING_HEADER)
    let modules = rings + Limits.rings * MemoryLayout<concourse_event_ring>.stride
    let names = modules + Limits.moduleBytes
    let records = names + Limits.names * MemoryLayout<concourse_queue_name>.stride
    let size = records + Limits.rings * capacity * MemoryLayout<concourse_event_record>.stride
    guard let memory = flight.map({ mapFile(size, fixed: records, $0) }) ?? mapPrivate(size) else {
      // ORDERING: relaxed; as above. Without a file, a tool can still record.
      if flight != nil { isBegun.store(false, ordering: .relaxed) }
      return nil
    }
    concourse_at_fork({ _ in RecordingMemory.becomeForkedChild() }, nil)
    hasSteadyTicks = concourse_has_steady_ticks()
    mask = UInt64(capacity - 1)
    let header = memory.assumingMemoryBound(to: Header.self)
    let first = clocks
    header.initialize(
      to: Header(
        magic: (0, 0, 0, 0, 0, 0, 0, 0), layout: UInt32(CONCOURSE_RECORDING_LAYOUT), process: Process.id,
        ring_capacity: UInt32(capacity), ring_limit: UInt32(Limits.rings), name_limit: UInt32(Limits.names),
        module_bytes: UInt32(Limits.moduleBytes), rings: UInt64(rings), records: UInt64(records),
        names: UInt64(names), modules: UInt64(modules), first_ticks: first.ticks, first_uptime: first.uptime,
        first_wall: Clock.wall(), ticks_are_nanoseconds: hasSteadyTicks ? 0 : 1, ring_count: 0, name_count: 0,
        module_count: 0, lost: 0, lost_names: 0))
    noteModules(header)
    concourse_publish_recording(header, UInt64(size))
    return header
  }

  private static func mapPrivate(_ size: Int) -> UnsafeMutableRawPointer? {
    if let memory = map(size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1) { return memory }
    Trap.warn(
      "nothing can be recorded: the system refuses \(size >> 20) MiB of address space: "
        + String(cString: strerror(errno)))
    // ORDERING: relaxed; only says why there is no memory.
    isRefused.store(true, ordering: .relaxed)
    return nil
  }

  /// Whether the system has refused the memory.
  static var wasRefused: Bool {
    // ORDERING: relaxed; as above.
    isRefused.load(ordering: .relaxed)
  }
  private static let isRefused = Atomic<Bool>(false)

  private static func map(_ size: Int, _ flags: Int32, _ file: Int32) -> UnsafeMutableRawPointer? {
    let start = mmap(nil, size, PROT_READ | PROT_WRITE, flags, file, 0)
    return start == UnsafeMutableRawPointer(bitPattern: -1) ? nil : start
  }

  /// - Parameter fixed: the bytes at the start that must exist before they are written.
  private static func mapFile(_ size: Int, fixed: Int, _ flight: Flight) -> UnsafeMutableRawPointer? {
    // The program may change its folder.
    let resolved = realpath(flight.folder, nil)
    let unresolved = errno
    defer { free(resolved) }
    let folder = resolved.map { String(cString: $0) } ?? flight.folder
    var name = "\(folder)/concourse-\(getpid()).recording"
    func fail(_ error: Int32) -> UnsafeMutableRawPointer? {
      Trap.warn("CONCOURSE_RECORDER: \(name) cannot be written: \(String(cString: strerror(error)))")
      return nil
    }
    // Beyond the limit, the signal SIGXFSZ would end the process.
    if size > concourse_file_limit() { return fail(EFBIG) }
    guard resolved != nil else { return fail(unresolved) }
    let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
    var file = open(name, flags, 0o600)
    if file < 0 && errno == EEXIST {
      // A process that had the same number has left it.
      name = "\(folder)/concourse-\(getpid())-\(Clock.wall()).recording"
      file = open(name, flags, 0o600)
    }
    guard file >= 0 else { return fail(errno) }
    defer { close(file) }
    var error: Int32
    repeat { error = posix_fallocate(file, 0, off_t(fixed)) } while error == EINTR
    if error == 0 && !(ftruncate(file, off_t(size)) == 0 && concourse_identify_file(file, &identity)) {
      error = errno
    }
    guard error == 0, let memory = map(size, MAP_SHARED, file) else {
      error = error == 0 ? errno : error
      unlink(name)
      return fail(error)
    }
    path = strdup(name)
    owner = getpid()
    if !flight.isKept { atexit { RecordingMemory.removeFile() } }
    return memory
  }

  static func removeFile() {
    // A child made by `clone` itself runs this, too.
    if let path, owner == getpid() { unlink(path) }
  }

  /// Whether this is a forked child whose parent had the memory.
  static var isForgotten: Bool {
    // ORDERING: relaxed; set while the child has one thread.
    wasForgotten.load(ordering: .relaxed)
  }
  private static let wasForgotten = Atomic<Bool>(false)

  /// Stops recording in a forked child for good: the file is the parent's.
  static func becomeForkedChild() {
    // ORDERING: relaxed; the child has one thread.
    wasForgotten.store(true, ordering: .relaxed)
    concourse_set_recording(false)
    concourse_forget_streams()
    concourse_forget_recording()
    CurrentThread.state.pointee.recording = nil
    path = nil
  }
}

extension Int {
  /// The next power of two, not outside `range`.
  fileprivate func roundedUpToPowerOf2(within range: ClosedRange<Int>) -> Int {
    var power = range.lowerBound
    while power < self && power < range.upperBound { power *= 2 }
    return power
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes of UTF-8 text that fit into `limit` without a part of a character.
  package func wholeCharacters(within limit: Int) -> Int {
    guard count > limit else { return count }
    var end = limit
    // Not a byte that continues a character.
    while end > 0 && self[end] & 0xC0 == 0x80 { end -= 1 }
    return end
  }
}
