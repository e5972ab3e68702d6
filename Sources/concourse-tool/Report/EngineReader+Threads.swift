import CTracing

/// The threads, and what the engine keeps of each.
extension EngineReader {
  /// Offsets in the engine's state of a thread, by its header.
  enum ThreadState {
    static let frame = offset(of: \.frame)
    static let queue = offset(of: \.queue)
    static let worker = offset(of: \.worker)
    static let id = offset(of: \.id)
    static let blockedSince = offset(of: \.blocked_since)
    static let delivering = offset(of: \.delivering)
    static let group = offset(of: \.group)

    private static func offset(of field: PartialKeyPath<concourse_thread>) -> UInt64 {
      UInt64(MemoryLayout<concourse_thread>.offset(of: field)!)
    }
  }

  mutating func readThreads(_ candidates: [UInt64], _ blocks: ThreadBlocks) throws(EngineTypes.Missing) {
    let known = Set(process.threads.map(\.id))
    var pointers: [UInt32: UInt64] = [:]
    for pointer in candidates {
      let state = pointer &+ UInt64(bitPattern: record.threadState)
      if let id: UInt32 = memory.number(at: pointer &+ blocks.id), known.contains(id) {
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
    snapshot.indexThreads()
  }

  func role(of thread: TargetThread) -> ThreadInfo.Role {
    switch thread.name {
    case "concourse-watch": .monitor
    case "concourse-event": .events
    default: thread.idHere == UInt32(bitPattern: process.id) ? .main : .other
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
    info.queueAddress = state &+ ThreadState.queue
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
}
