/// What a thread waits for.
extension EngineReader {
  /// What threads that have slept for long wait for, as they have registered it for the search for deadlocks. One of them
  /// is awake while it searches, and when it traps.
  struct Registered {
    let kind: UInt8
    let object: UInt64
    let frames: UInt64
  }

  /// The records of `BlockedThreads`, by threads: see `BlockedThread` in the engine for the offsets.
  func readRegistered() -> [UInt32: Registered] {
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
  func runner(of item: UInt64) throws(EngineTypes.Missing) -> UInt32? {
    guard let place = types["DispatchWorkItem"]?.fields["runner"],
      let runner: UInt32 = memory.number(at: item &+ place), isThread(runner),
      let state: UInt32 = memory.number(at: item &+ (try types.offset("DispatchWorkItem", "state")))
    else { return nil }
    // Begun once, and not complete: see `WorkItemState`.
    return state >> 8 == 1 && state & 2 == 0 ? runner : nil
  }

  func wait(of registered: Registered) throws(EngineTypes.Missing) -> Wait? {
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

  /// What the thread waits for: the address of the futex on which it sleeps is in an object of the engine, or is not.
  func classify(_ info: inout ThreadInfo) throws(EngineTypes.Missing) {
    guard let call = info.thread.call else { return }
    guard call.number == process.processor.futex else { return classifyForeign(&info) }
    if object(around: call.arguments[0], ofClass: "Monitor") != nil { info.role = .monitor }
    let address = call.arguments[0]
    info.hasTimeout = call.arguments[3] != 0
    if case .idle = info.wait { return }
    switch info.role {
    case .monitor, .events:
      info.wait = .idle
      return
    // It receives signals that all others block.
    case .other where info.thread.name == "concourse-sig":
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
    } else if let group = object(around: address, ofClass: "DispatchGroup") {
      info.wait = .group(group)
    } else if let semaphore = object(around: address, ofClass: "DispatchSemaphore") {
      info.wait = .semaphore(semaphore)
    } else if let item = object(around: address, ofClass: "DispatchWorkItem") {
      info.wait = .workItem(item)
    } else if let loop = object(around: address, ofClass: "ParallelLoop") {
      info.wait = .loop(loop)
    } else if object(around: address, ofClass: "MainThread") != nil {
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

  /// The queue of a synchronous call, if a `SyncWaiter` of this thread is there.
  func queue(ofWaiterAt address: UInt64, _ thread: UInt32) throws(EngineTypes.Missing) -> UInt64? {
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
    var seen: Set<UInt64> = []
    while let queue = snapshot.queues[link], seen.insert(link).inserted {
      if queue.kind == .main || queue.kind == .runLoop { return .service(queue: link, named: named) }
      // It has all queues that it needs, and is about to go on.
      if queue.kind == .global { break }
      if queue.word.owner != info.id { return .turn(queue: link, named: named) }
      link = queue.target
    }
    return .turn(queue: named, named: named)
  }

  func classifyForeign(_ info: inout ThreadInfo) {
    guard let call = info.thread.call else { return }
    if case .idle = info.wait { return }
    switch info.role {
    case .monitor, .events:
      info.wait = .idle
      return
    case .worker where call.number == process.processor.epollWait && isParked(info):
      // Its state was read before its call: it has become idle in between.
      info.wait = .idle
      return
    case .other
    where process.core != nil && call.number == process.processor.epollWait && info.frames.isEmpty:
      // A core dump has no names of threads.
      info.role = .events
      info.wait = .idle
      return
    case .main, .worker, .other: break
    }
    if call.number == process.processor.futex {
      let futex = FutexWait(call.arguments)
      if let owner = futex.ownerOfMutex(in: memory), isThread(owner), owner != info.id {
        info.wait = .mutex(address: futex.address, owner: owner)
      } else {
        info.wait = .call("futex", nil)
      }
      return
    }
    var detail: String?
    if process.core == nil, process.processor.takesDescriptor(call.number) {
      let descriptor = Int32(truncatingIfNeeded: call.arguments[0])
      detail = "descriptor \(descriptor)"
      if let file = ProcFile.link("/proc/\(process.alive)/fd/\(descriptor)") { detail! += " (\(file))" }
    }
    info.wait = .call(process.processor.name(ofSystemCall: call.number), detail)
  }

  /// Whether a worker has no item now.
  private func isParked(_ info: ThreadInfo) -> Bool { memory.word(info.frameAddress) == 0 }
}
