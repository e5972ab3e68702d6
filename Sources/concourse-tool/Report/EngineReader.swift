/// Reads the state of the engine out of the memory of a process.
///
/// The process may run meanwhile. Everything that is read is checked before it is believed, and what a verdict rests on
/// is read once more (`Verdicts`).
///
/// Longer than 600 lines: one pass over one memory, whose steps share what they have found.
struct EngineReader {
  typealias Failure = TargetProcess.Failure

  let process: TargetProcess
  let record: InspectionRecord
  let types: EngineTypes
  var snapshot: EngineSnapshot

  var memory: any TargetMemory { process.memory }

  /// The waiting thread's entry in a queue's list, by its address.
  private var waiterQueues: [UInt64: UInt64] = [:]
  /// Objects found, by class.
  private var objects: [String: [UInt64]] = [:]
  private var nodes: NodeIndex?
  private var monitors: [UInt64] { objects["Monitor"] ?? [] }

  static func read(_ process: TargetProcess, _ record: InspectionRecord) throws(Failure) -> EngineSnapshot {
    var reader = EngineReader(process: process, record: record)
    do {
      try reader.readAll()
    } catch {
      guard process.core != nil || TargetProcess.isAlive(process.id) else {
        throw Failure(reason: "process \(process.id) (\(process.name)) has ended")
      }
      throw Failure(
        reason:
          "process \(process.id) (\(process.name)) runs on another version of Concourse: \(record.image.path) "
          + "has no \(error.what)")
    }
    return reader.snapshot
  }

  private init(process: TargetProcess, record: InspectionRecord) {
    self.process = process
    self.record = record
    types = EngineTypes(record.types, in: process.memory)
    snapshot = EngineSnapshot(process: process)
  }

  private mutating func readAll() throws(EngineTypes.Missing) {
    guard record.roots != 0 else {
      snapshot.isStarted = false
      snapshot.threads = process.threads.map { ThreadInfo(id: $0.id, thread: $0, role: role(of: $0)) }
      for index in snapshot.threads.indices { classifyForeign(&snapshot.threads[index]) }
      return
    }
    snapshot.width = memory.count(at: record.width)
    snapshot.cap = memory.count(at: record.cap)
    snapshot.poolThreads = memory.count(at: record.threads)
    let scan = MemoryScan(of: process, classes: Array(types.byMetadata.keys))
    for (address, metadata) in scan.objects where isAlive(address) {
      if let type = types.byMetadata[metadata] { objects[type.name, default: []].append(address) }
    }
    try readQueues()
    try readGroups()
    try readThreads(scan.threadPointers)
    try countRunning()
    try readBands()
    try readSources()
    try readChannels()
    readTimers()
  }

  /// Whether an object's reference count says that it is in use.
  private func isAlive(_ address: UInt64) -> Bool {
    guard let counts = memory.word(address &+ 8) else { return false }
    // The highest bit: the count is elsewhere. Bit 32: the object is being destroyed.
    return counts >> 63 != 0 || (counts >> 32 & 1 == 0 && counts & 1 != 0)
  }

  private func object(_ address: UInt64, isA name: String) -> Bool {
    guard let metadata = memory.word(address), let type = types.byMetadata[metadata] else { return false }
    return types.isKind(type, of: name)
  }

  // MARK: Queues

  private mutating func readQueues() throws(EngineTypes.Missing) {
    let queueClasses = types.byMetadata.values.filter { types.isKind($0, of: "DispatchQueue") }.map(\.name)
    var tails: [UInt64: UInt64] = [:]
    for name in queueClasses {
      for address in objects[name] ?? [] {
        guard let queue = try readQueue(at: address) else { continue }
        snapshot.queues[address] = queue
        if queue.kind == .main { snapshot.mainQueue = address }
        for tail in try lists(of: queue) { tails[tail] = address }
      }
    }
    if !tails.isEmpty { nodes = NodeIndex(in: process) }
    for (tail, address) in tails { try readList(endingAt: tail, of: address) }
  }

  private func readQueue(at address: UInt64) throws(EngineTypes.Missing) -> QueueInfo? {
    guard let number: UInt8 = memory.number(at: address &+ (try types.offset("DispatchObject", "kind"))),
      let kind = QueueKind(rawValue: number),
      let word = memory.word(address &+ (try types.offset("DispatchQueue", "state"))),
      let target = memory.word(address &+ (try types.offset("DispatchQueue", "targetReference"))),
      let level: UInt8 = memory.number(at: address &+ (try types.offset("DispatchQueue", "servedLevel"))),
      level < 6,
      let width: UInt16 = memory.number(at: address &+ (try types.offset("DispatchQueue", "width"))),
      let extras = memory.word(address &+ (try types.offset("DispatchObject", "extrasReference"))),
      target == 0 ? !kind.isLane : object(target, isA: "DispatchQueue")
    else { return nil }
    let state = QueueWord(bits: word)
    var queue = QueueInfo(
      address: address, kind: kind,
      label: LabelWords.text(at: address &+ (try types.offset("DispatchQueue", "name")), in: memory) ?? "",
      word: state, wordAddress: address &+ (try types.offset("DispatchQueue", "state")), target: target,
      level: Int(level), width: state.isNarrow ? Int(width) : nil)
    if extras != 0, object(extras, isA: "QueueExtras") {
      queue.suspensions = memory.count(at: extras &+ (try types.offset("QueueExtras", "suspensions")))
      if let owns: UInt8 = memory.number(at: extras &+ (try types.offset("QueueExtras", "ownsLabel"))),
        owns == 0,
        let label = memory.word(extras &+ (try types.offset("QueueExtras", "cLabel"))), label != 0,
        let text = memory.text(at: label)
      {
        queue.label = text
      }
      // The kept ones are the first of the two chains.
      var node = memory.word(extras &+ (try types.offset("QueueExtras", "heldBack"))) ?? 0
      while node != 0 && queue.heldBack < 1_000_000 {
        queue.heldBack += 1
        node = memory.word(node) ?? 0
      }
    }
    return queue
  }

  /// The last nodes of the queue's lists: one, or one for each class of a workloop.
  private func lists(of queue: QueueInfo) throws(EngineTypes.Missing) -> [UInt64] {
    var places = [queue.address &+ (try types.offset("DispatchQueue", "list"))]
    if queue.kind == .global {
      guard let root = memory.word(queue.address &+ (try types.offset("GlobalQueue", "root"))) else {
        return []
      }
      places = [root &+ (try types.offset("RootQueue", "list"))]
    } else if queue.kind == .workloop {
      let first = queue.address &+ (try types.offset("DispatchWorkloop", "entries"))
      places = (0..<6).map { first + $0 * 16 }
    }
    return places.compactMap { memory.word($0) }.filter { $0 != 0 && $0 % 16 == 0 }
  }

  private mutating func readList(endingAt tail: UInt64, of address: UInt64) throws(EngineTypes.Missing) {
    guard var queue = snapshot.queues[address] else { return }
    defer { snapshot.queues[address] = queue }
    let workOffset = try types.offset("WorkNode", "work")
    let traitsOffset = try types.offset("WorkNode", "traits")
    let groupOffset = try types.offset("WorkNode", "group")
    let waiterThread = try types.offset("SyncWaiter", "thread")
    let all = nodes?.list(endingAt: tail) ?? [tail]
    queue.oldest = all.first ?? 0
    for (index, node) in all.enumerated() {
      queue.items += 1
      // The details of the first thousands are enough.
      guard index < 20_000, let traits: UInt8 = memory.number(at: node &+ traitsOffset),
        let work = memory.word(node &+ workOffset)
      else { continue }
      if traits & 2 != 0 {
        guard let thread: UInt32 = memory.number(at: work &+ waiterThread) else { continue }
        queue.waiters.append(thread)
        waiterQueues[work] = address
      } else if object(work, isA: "DispatchWorkItem") {
        queue.workItems.insert(work)
      }
      if index == 0 && traits & 1 != 0 && queue.word.owner == 0 && queue.word.readers > 0 {
        queue.barrierIsNext = true
      }
      if let group = memory.word(node &+ groupOffset), group != 0, object(group, isA: "DispatchGroup") {
        queue.groups.insert(group)
      }
    }
  }

  private mutating func readGroups() throws(EngineTypes.Missing) {
    var queues: [UInt64: [UInt64]] = [:]
    for queue in snapshot.queues.values {
      for group in queue.groups { queues[group, default: []].append(queue.address) }
    }
    for address in objects["DispatchGroup"] ?? [] {
      let word = memory.word(address &+ (try types.offset("DispatchGroup", "state"))) ?? 0
      snapshot.groups[address] = GroupInfo(
        word: GroupWord(bits: word), queues: queues[address, default: []].sorted())
    }
    for address in objects["DispatchSemaphore"] ?? [] {
      let value = memory.word(address &+ (try types.offset("DispatchSemaphore", "value"))) ?? 0
      snapshot.semaphores[address] = Int(truncatingIfNeeded: value)
    }
  }

  // MARK: Threads

  /// Offsets in `concourse_thread`.
  enum ThreadState {
    static let frame: UInt64 = 0
    static let worker: UInt64 = 16
    static let id: UInt64 = 40
    static let blockedSince: UInt64 = 72
    static let delivering: UInt64 = 96
    static let group: UInt64 = 104
  }
  /// Where glibc has a thread's id, from its thread pointer on.
  private static let libraryThreadID: UInt64 = 0x2D0

  /// What threads that have slept for long wait for, as they have registered it for the search for deadlocks. One of them
  /// is awake while it searches, and when it traps.
  private struct Registered {
    let kind: UInt8
    let object: UInt64
    let frames: UInt64
  }

  /// The records of `BlockedThreads`, by threads: see `BlockedThread` in the engine for the offsets.
  private func readRegistered() -> [UInt32: Registered] {
    var found: [UInt32: Registered] = [:]
    guard let all = objects["BlockedThreads"]?.first, let offset = types["BlockedThreads"]?.fields["lists"],
      let lists = memory.word(all &+ offset), lists != 0
    else { return found }
    for index in 0..<128 as Range<UInt64> {
      var link = memory.word(lists &+ index * 8) ?? 0
      while link != 0, found.count < 100_000, let kind: UInt8 = memory.number(at: link &+ 48),
        let object = memory.word(link &+ 24), let frames = memory.word(link &+ 40),
        let thread: UInt32 = memory.number(at: link &+ 52), isThread(thread), found[thread] == nil
      {
        found[thread] = Registered(kind: kind, object: object, frames: frames)
        link = memory.word(link) ?? 0
      }
    }
    return found
  }

  /// The thread that is in the first and only execution of a work item.
  private func runner(of item: UInt64) throws(EngineTypes.Missing) -> UInt32? {
    guard let place = types["DispatchWorkItem"]?.fields["runner"],
      let runner: UInt32 = memory.number(at: item &+ place), isThread(runner),
      let state: UInt32 = memory.number(at: item &+ (try types.offset("DispatchWorkItem", "state")))
    else { return nil }
    // Begun once, and not complete: see `WorkItemState`.
    return state >> 8 == 1 && state & 2 == 0 ? runner : nil
  }

  private func wait(of registered: Registered) throws(EngineTypes.Missing) -> Wait? {
    // The number of the case of `BlockedThread.Kind`.
    switch registered.kind {
    case 0, 1:
      guard snapshot.queues[registered.object] != nil,
        let named = memory.word(registered.frames &+ (try types.offset("Frame", "queue"))),
        snapshot.queues[named] != nil
      else { return nil }
      return registered.kind == 0
        ? .turn(queue: registered.object, named: named) : .service(queue: registered.object, named: named)
    case 2: return .workItem(registered.object)
    case 3:
      let runner = (memory.number(at: registered.object, as: UInt32.self) ?? 0) & 0x7FFF_FFFF
      return isThread(runner) ? .once(runner: runner) : nil
    case 4: return snapshot.groups[registered.object] == nil ? nil : .group(registered.object)
    default: return nil
    }
  }

  private mutating func readThreads(_ candidates: [UInt64]) throws(EngineTypes.Missing) {
    let known = Set(process.threads.map(\.id))
    var pointers: [UInt32: UInt64] = [:]
    for pointer in candidates {
      let state = pointer &+ UInt64(bitPattern: record.threadState)
      if let id: UInt32 = memory.number(at: pointer &+ Self.libraryThreadID), known.contains(id) {
        pointers[id] = pointer
      } else if let id: UInt32 = memory.number(at: state &+ ThreadState.id), known.contains(id) {
        pointers[id] = pointer
      }
    }
    let registered = readRegistered()
    for thread in process.threads {
      var info = ThreadInfo(id: thread.id, thread: thread, role: role(of: thread))
      if let pointer = thread.threadPointer ?? pointers[thread.id] {
        info.thread.threadPointer = pointer
        try readEngineState(of: &info, at: pointer &+ UInt64(bitPattern: record.threadState))
      }
      try classify(&info)
      if info.wait.hasNoTimeout { info.hasTimeout = false }
      if let own = registered[thread.id], process.core != nil || info.blockedSince != 0,
        let wait = try wait(of: own)
      {
        if info.wait == .running || process.core != nil { info.wait = wait }
        // Only waits without a time-out are registered.
        if info.wait == wait { info.hasTimeout = false }
      }
      if case .workItem(let item) = info.wait, let runner = try runner(of: item) {
        snapshot.runners[item] = runner
      }
      snapshot.threads.append(info)
    }
  }

  private func role(of thread: TargetThread) -> ThreadInfo.Role {
    switch thread.name {
    case "concourse-watch": .monitor
    case "concourse-event": .events
    default: thread.id == UInt32(process.id) ? .main : .other
    }
  }

  private func readEngineState(of info: inout ThreadInfo, at state: UInt64) throws(EngineTypes.Missing) {
    var worker = memory.word(state &+ ThreadState.worker) ?? 0
    let isDelivering = worker == 0
    if isDelivering { worker = memory.word(state &+ ThreadState.delivering) ?? 0 }
    if worker != 0, let band = memory.word(worker &+ (try types.offset("WorkerRecord", "band"))),
      object(band, isA: "Band")
    {
      info.role = .worker(band: try bandName(band))
      let status: UInt32? = memory.number(at: worker &+ (try types.offset("WorkerRecord", "status")))
      if status == 4 { info.wait = .idle }
    }
    info.blockedSinceAddress = state &+ ThreadState.blockedSince
    let since = memory.word(info.blockedSinceAddress) ?? 0
    info.blockedSince = since
    if since != 0, let now = process.now, since <= now { info.blockedFor = now - since }
    info.frameAddress = state &+ ThreadState.frame
    if let group = memory.word(state &+ ThreadState.group), object(group, isA: "DispatchGroup") {
      info.group = group
    }
    if worker != 0 && !isDelivering {
      info.progressAddress = worker &+ (try types.offset("WorkerRecord", "progress"))
    }
    let progress: UInt32? = isDelivering ? nil : try progress(of: worker)
    var frame = memory.word(state &+ ThreadState.frame) ?? 0
    while frame != 0, info.frames.count < 64,
      let queue = memory.word(frame &+ (try types.offset("Frame", "queue"))), snapshot.queues[queue] != nil,
      let exclusive: UInt8 = memory.number(at: frame &+ (try types.offset("Frame", "exclusive")))
    {
      info.frames.append(FrameInfo(queue: queue, isExclusive: exclusive & 1 != 0))
      frame = memory.word(frame &+ (try types.offset("Frame", "parent"))) ?? 0
    }
    if let progress, !info.frames.isEmpty { info.busyForAtLeast = try timeAtEntry(of: worker, progress) }
  }

  /// The number of entries that a worker has begun.
  private func progress(of worker: UInt64) throws(EngineTypes.Missing) -> UInt32? {
    memory.number(at: worker &+ (try types.offset("WorkerRecord", "progress")))
  }

  /// How long the worker has been at its entry, the one after `begun - 1` others: since the monitor first saw it there,
  /// or longer. The monitor writes the time before the number, so the time is not that of an earlier entry.
  private func timeAtEntry(of worker: UInt64, _ begun: UInt32) throws(EngineTypes.Missing) -> UInt64? {
    guard let now = process.now,
      let seen: UInt32 = memory.number(at: worker &+ (try types.offset("WorkerRecord", "seenProgress"))),
      let since = memory.word(worker &+ (try types.offset("WorkerRecord", "seenSince"))),
      seen == begun, try progress(of: worker) == begun, since != 0, since <= now
    else { return nil }
    return now - since
  }

  private func bandName(_ band: UInt64) throws(EngineTypes.Missing) -> String {
    let name = band &+ (try types.offset("Band", "name"))
    guard let start = memory.word(name), let count = memory.word(name &+ 8), count < 64,
      let text = memory.bytes(at: start, count: Int(count))
    else { return "" }
    return String(decoding: text, as: UTF8.self)
  }

  /// What the thread waits for: the address of the futex on which it sleeps is in an object of the engine, or is not.
  private func classify(_ info: inout ThreadInfo) throws(EngineTypes.Missing) {
    guard let call = info.thread.call else { return }
    guard call.number == SystemCallNames.futex else { return classifyForeign(&info) }
    if monitors.contains(where: { contains($0, "Monitor", call.arguments[0]) }) { info.role = .monitor }
    let address = call.arguments[0]
    info.hasTimeout = call.arguments[3] != 0
    if case .idle = info.wait { return }
    switch info.role {
    case .monitor, .events:
      info.wait = .idle
      return
    case .main, .worker, .other: break
    }
    if let named = try queue(ofWaiterAt: address, info.id) {
      // Of a queue that works, an old entry may still be linked.
      if let queue = waiterQueues[address], leads(named, to: queue) {
        let isServed = snapshot.queues[queue].map { $0.kind == .main || $0.kind == .runLoop } ?? false
        info.wait = isServed ? .service(queue: queue, named: named) : .turn(queue: queue, named: named)
      } else {
        info.wait = whereWaits(info, named: named)
      }
    } else if let group = objects["DispatchGroup"]?.first(where: { contains($0, "DispatchGroup", address) }) {
      info.wait = .group(group)
    } else if let semaphore = snapshot.semaphores.keys.first(where: {
      contains($0, "DispatchSemaphore", address)
    }) {
      info.wait = .semaphore(semaphore)
    } else if let item = objects["DispatchWorkItem"]?.first(where: {
      contains($0, "DispatchWorkItem", address)
    }) {
      info.wait = .workItem(item)
    } else if let loop = objects["ParallelLoop"]?.first(where: { contains($0, "ParallelLoop", address) }) {
      info.wait = .loop(loop)
    } else if objects["MainThread"]?.contains(where: { contains($0, "MainThread", address) }) ?? false {
      info.wait = .idle
    } else if info.blockedSince != 0 {
      // A gate that is being passed has the id of the thread that runs the body, and a bit for sleeping threads.
      let word: UInt32 = memory.number(at: address) ?? 0
      let runner = word & 0x7FFF_FFFF
      info.wait = word >> 31 != 0 && isThread(runner) ? .once(runner: runner) : .engine
    } else {
      classifyForeign(&info)
    }
  }

  /// Whether a queue is another's target, or the same.
  private func leads(_ queue: UInt64, to target: UInt64) -> Bool {
    var link = queue
    for _ in 0..<1000 {
      if link == target { return true }
      guard let next = snapshot.queues[link]?.target, next != 0 else { return false }
      link = next
    }
    return false
  }

  private func contains(_ object: UInt64, _ type: String, _ address: UInt64) -> Bool {
    address > object && address < object &+ UInt64(types[type]?.size ?? 0)
  }

  private func isThread(_ id: UInt32) -> Bool { process.threads.contains { $0.id == id } }

  /// The queue of a synchronous call, if a `SyncWaiter` of this thread is there.
  private func queue(ofWaiterAt address: UInt64, _ thread: UInt32) throws(EngineTypes.Missing) -> UInt64? {
    guard let id: UInt32 = memory.number(at: address &+ (try types.offset("SyncWaiter", "thread"))),
      id == thread,
      let queue = memory.word(address &+ (try types.offset("SyncWaiter", "queue"))),
      snapshot.queues[queue] != nil
    else { return nil }
    return queue
  }

  /// The entry has left its list, but the thread sleeps still: its body runs on another thread, at the end of the
  /// hierarchy or on the queue's owner; or the queue has just become its own.
  private func whereWaits(_ info: ThreadInfo, named: UInt64) -> Wait {
    var link = named
    while let queue = snapshot.queues[link] {
      if queue.kind == .main || queue.kind == .runLoop { return .service(queue: link, named: named) }
      // It has all queues that it needs, and is about to go on.
      if queue.kind == .global { break }
      if queue.word.owner != info.id { return .turn(queue: link, named: named) }
      link = queue.target
    }
    return .turn(queue: named, named: named)
  }

  private func classifyForeign(_ info: inout ThreadInfo) {
    guard let call = info.thread.call else { return }
    if case .idle = info.wait { return }
    switch info.role {
    case .monitor, .events:
      info.wait = .idle
      return
    case .worker where call.number == SystemCallNames.epollWait && isParked(info):
      // Its state was read before its call: it has become idle in between.
      info.wait = .idle
      return
    case .other where process.core != nil && call.number == SystemCallNames.epollWait && info.frames.isEmpty:
      // A core dump has no names of threads.
      info.role = .events
      info.wait = .idle
      return
    case .main, .worker, .other: break
    }
    if call.number == SystemCallNames.futex {
      let address = call.arguments[0]
      if let owner: UInt32 = memory.number(at: address &+ 8), isThread(owner), owner != info.id,
        let word: UInt32 = memory.number(at: address), word != 0
      {
        info.wait = .mutex(address: address, owner: owner)
      } else {
        info.wait = .call("futex", nil)
      }
      return
    }
    var detail: String?
    if process.core == nil, SystemCallNames.takesDescriptor(call.number) {
      let descriptor = Int32(truncatingIfNeeded: call.arguments[0])
      detail = "descriptor \(descriptor)"
      if let file = ProcFile.link("/proc/\(process.id)/fd/\(descriptor)") { detail! += " (\(file))" }
    }
    info.wait = .call(SystemCallNames.name(call.number), detail)
  }

  /// Whether a worker has no item now.
  private func isParked(_ info: ThreadInfo) -> Bool { memory.word(info.frameAddress) == 0 }

  // MARK: Who holds what

  /// Finds the holders of queues, and takes the item that its owner runs out of the counts: it stays in the list.
  private mutating func countRunning() throws(EngineTypes.Missing) {
    for address in snapshot.queues.keys {
      let owner = snapshot.queues[address]!.word.owner
      let kind = snapshot.queues[address]!.kind
      if owner != 0 { snapshot.queues[address]!.holders = [owner] }
      for thread in snapshot.threads where thread.id != owner {
        if case .idle = thread.wait { continue }
        guard thread.frames.contains(where: { $0.queue == address }) else { continue }
        // A thread that waits in `sync` has no frame of that queue yet.
        if kind == .concurrent || kind == .main || kind == .runLoop || kind == .global {
          snapshot.queues[address]!.holders.append(thread.id)
        }
      }
      guard owner != 0, snapshot.queues[address]!.items > 0, let thread = snapshot.thread(owner),
        case .worker = thread.role
      else { continue }
      let isSync = thread.frames.dropLast().contains { $0.queue == address }
      if !isSync { snapshot.queues[address]!.items -= 1 }
    }
  }

  // MARK: The pool

  private mutating func readBands() throws(EngineTypes.Missing) {
    var bands: [UInt64] = []
    var waiting: [UInt64: Int] = [:]
    for level in 1..<6 as Range<UInt64> {
      guard let root = memory.word(record.roots &+ level * 8),
        let band = memory.word(root &+ (try types.offset("RootQueue", "band"))),
        let queue = memory.word(root &+ (try types.offset("RootQueue", "client")))
      else { continue }
      if !bands.contains(band) { bands.append(band) }
      waiting[band, default: 0] += snapshot.queues[queue]?.items ?? 0
    }
    for band in bands.reversed() {
      let isHeldBack = (memory.word(band &+ (try types.offset("Band", "heldBack"))) ?? 0) & 1 != 0
      let allowed = snapshot.width + memory.count(at: band &+ (try types.offset("Band", "allowance")))
      let limit = isHeldBack ? 0 : allowed
      let counts = BandWord(bits: memory.word(band &+ (try types.offset("Band", "counters"))) ?? 0)
      var entries = waiting[band] ?? 0
      var worker = memory.word(band &+ (try types.offset("Band", "newestRecord"))) ?? 0
      var seen = 0
      while worker != 0 && seen < 100_000 {
        if let kept = memory.word(worker &+ (try types.offset("WorkerRecord", "kept"))), kept != 0 {
          entries += 1
        }
        worker = memory.word(worker &+ (try types.offset("WorkerRecord", "older"))) ?? 0
        seen += 1
      }
      snapshot.bands.append(
        BandInfo(name: try bandName(band), counts: counts, activeLimit: limit, waiting: entries))
    }
  }

  // MARK: Events

  private mutating func readSources() throws(EngineTypes.Missing) {
    for core in objects["SourceCore"] ?? [] {
      let state = core &+ (try types.offset("SourceCore", "state"))
      let backend = memory.word(core &+ (try types.offset("SourceCore", "backend"))) ?? 0
      let kind: UInt8 = memory.number(at: core &+ (try types.offset("SourceCore", "kind"))) ?? 0
      let queue = memory.word(core &+ (try types.offset("SourceCore", "target"))) ?? 0
      let kinds = types["SourceKind"]?.cases ?? []
      // Otherwise the memory is in use for something else by now.
      guard kinds.indices.contains(Int(kind)), object(queue, isA: "DispatchQueue") else { continue }
      func flag(_ name: String) throws(EngineTypes.Missing) -> Bool {
        (memory.number(at: state &+ (try types.offset("SourceState", name)), as: UInt8.self) ?? 0) & 1 != 0
      }
      var source = SourceInfo(
        address: core, backend: backend,
        kind: kinds[Int(kind)],
        handle: Int(truncatingIfNeeded: memory.word(core &+ (try types.offset("SourceCore", "handle"))) ?? 0),
        isActive: try flag("isActive"), isCancelled: try flag("isCancelled"),
        suspensions: memory.count(at: state &+ (try types.offset("SourceState", "suspensions"))),
        isVisiting: try flag("visitIsDue"),
        pending: memory.word(core &+ (try types.offset("SourceCore", "pending"))) ?? 0,
        queue: queue, dueIn: nil,
        handlerThread: memory.number(at: core &+ (try types.offset("SourceCore", "handlerThread"))) ?? 0)
      if object(backend, isA: "TimerBackend"), source.isActive && !source.isCancelled {
        let schedule = backend &+ (try types.offset("TimerBackend", "schedule"))
        let clock: UInt8 = memory.number(at: schedule &+ (try types.offset("TimerSchedule", "clock"))) ?? 2
        let next = memory.word(schedule &+ (try types.offset("TimerSchedule", "next"))) ?? .max
        source.dueIn = distance(to: next, isWall: clock == 1, isNever: clock > 1)
      }
      snapshot.sources.append(source)
    }
  }

  private func distance(to time: UInt64, isWall: Bool, isNever: Bool = false) -> Int64? {
    guard !isNever, time < 1 << 63, let now = process.now else { return nil }
    return Int64(time) - Int64(isWall ? WallClock.now : now)
  }

  private mutating func readChannels() throws(EngineTypes.Missing) {
    for entry in objects["DescriptorEntry"] ?? [] {
      let state = entry &+ (try types.offset("DescriptorEntry", "state"))
      let channels = memory.word(state &+ (try types.offset("DescriptorState", "openChannels"))) ?? 0
      let unfinished = memory.word(state &+ (try types.offset("DescriptorState", "unfinished"))) ?? 0
      snapshot.channels.append(
        ChannelInfo(
          channels: Int(truncatingIfNeeded: channels), unfinished: Int(truncatingIfNeeded: unfinished)))
    }
  }

  /// Delayed submissions and timers that are set, of both clocks.
  private mutating func readTimers() {
    guard let table = objects["TimerTable"]?.first, let type = types["TimerTable"] else { return }
    var info = TimersInfo(count: 0)
    for (name, isWall) in [("uptime", false), ("wall", true)] {
      guard let offset = type.fields[name] else { continue }
      // `TimerTable.Side`: whether it is for the wall clock; the heap's array; the line's array and its first index.
      let side = table &+ offset
      for (array, first) in [
        (memory.word(side &+ 8), 0), (memory.word(side &+ 16), memory.word(side &+ 24) ?? 0),
      ] {
        // Of an array's buffer: the count at 16, the elements at 32, beginning with the time.
        guard let array, let count = memory.word(array &+ 16), count > first, count < 1 << 40,
          let capacity = memory.word(array &+ 24), count <= capacity / 2
        else { continue }
        info.count += Int(count - first)
        let stride: UInt64 = 40
        if let time = memory.word(array &+ 32 &+ first &* stride),
          let left = distance(to: time, isWall: isWall)
        {
          info.nextIn = min(info.nextIn ?? .max, left)
        }
      }
    }
    if info.count > 0 { snapshot.timers = info }
  }
}
