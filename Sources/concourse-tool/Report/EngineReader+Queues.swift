/// The queues, what waits in their lists, and who holds them.
extension EngineReader {
  mutating func readQueues() throws(EngineTypes.Missing) {
    let queueClasses = types.byMetadata.values.filter { types.isKind($0, of: "DispatchQueue") }.map(\.name)
    var tails: [UInt64: (queue: UInt64, place: UInt64)] = [:]
    let roots = try roots()
    for name in queueClasses {
      for address in objects[name] ?? [] {
        guard let queue = try readQueue(at: address) else { continue }
        snapshot.queues[address] = queue
        if queue.kind == .main { snapshot.mainQueue = address }
        for place in try lists(of: queue, roots) {
          if let tail = memory.word(place), tail != 0, tail % 16 == 0 { tails[tail] = (address, place) }
        }
      }
    }
    if !tails.isEmpty {
      var nodes = NodeIndex(in: process)
      for (tail, (address, place)) in tails {
        try readList(nodes.takeList(endingAt: tail), of: address, newestAt: place)
      }
    }
    for root in roots {
      for batch in try batches(of: root) { try readList(batch, of: root.client) }
    }
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
      word: state, place: .init(word: address &+ (try types.offset("DispatchQueue", "state"))),
      target: target, level: Int(level), width: state.isNarrow ? Int(width) : nil)
    if extras != 0, object(extras, isA: "QueueExtras") {
      // Their address is the first field.
      queue.place.indicators = memory.word(extras &+ (try types.offset("QueueExtras", "readers"))) ?? 0
      queue.word = queue.word(in: memory)
      queue.place.suspensions = extras &+ (try types.offset("QueueExtras", "suspensions"))
      queue.place.resumes = types["QueueExtras"]?.fields["resumes"].map { extras &+ $0 } ?? 0
      queue.suspensions = memory.count(at: queue.place.suspensions)
      if let owns: UInt8 = memory.number(at: extras &+ (try types.offset("QueueExtras", "ownsLabel"))),
        owns == 0,
        let label = memory.word(extras &+ (try types.offset("QueueExtras", "cLabel"))), label != 0,
        let text = memory.text(at: label)
      {
        queue.label = text
      }
      // The kept ones are the first of the two chains.
      var node = memory.word(extras &+ (try types.offset("QueueExtras", "heldBack"))) ?? 0
      while node != 0 && links.take() {
        queue.heldBack += 1
        node = memory.word(node) ?? 0
      }
    }
    return queue
  }

  /// Where the last nodes of the queue's lists are: one, one for each class of a workloop, or one for each shard of a
  /// global queue.
  private func lists(of queue: QueueInfo, _ roots: [Root]) throws(EngineTypes.Missing) -> [UInt64] {
    var places = [queue.address &+ (try types.offset("DispatchQueue", "list"))]
    if queue.kind == .global {
      let list = try types.offset("RootQueue", "list")
      places = roots.filter { $0.client == queue.address }.map { $0.address &+ list }
    } else if queue.kind == .workloop {
      // A pointer to the lists, from background up.
      let entries = queue.address &+ (try types.offset("DispatchWorkloop", "entries"))
      places = memory.word(entries).map { first in (0..<5).map { first &+ $0 * 16 } } ?? []
    }
    return places
  }

  private mutating func readList(
    _ all: [UInt64], of address: UInt64, newestAt place: UInt64 = 0
  ) throws(EngineTypes.Missing) {
    guard var queue = snapshot.queues[address] else { return }
    defer { snapshot.queues[address] = queue }
    let workOffset = try types.offset("WorkNode", "work")
    let traitsOffset = try types.offset("WorkNode", "traits")
    let groupOffset = try types.offset("WorkNode", "group")
    let waiterThread = try types.offset("SyncWaiter", "thread")
    if queue.oldest == 0 { queue.oldest = all.first ?? 0 }
    if place != 0, let path = QueueInfo.ListPath(all, newestAt: place) { queue.paths.append(path) }
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
        queue.members.workItems.insert(work)
      }
      if index == 0 && traits & 1 != 0 && queue.word.owner == 0 && queue.word.readers > 0 {
        queue.barrierIsNext = true
      }
      if let group = memory.word(node &+ groupOffset), group != 0, object(group, isA: "DispatchGroup") {
        queue.members.groups.insert(group)
      }
    }
  }

  mutating func readGroups() throws(EngineTypes.Missing) {
    var queues: [UInt64: [UInt64]] = [:]
    for queue in snapshot.queues.values {
      for group in queue.members.groups { queues[group, default: []].append(queue.address) }
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

  /// Finds the holders of queues, and takes the item that its owner runs out of the counts: it stays in the list.
  mutating func countRunning() throws(EngineTypes.Missing) {
    var threads: [UInt64: [UInt32]] = [:]
    for thread in snapshot.threads where thread.wait != .idle {
      // A thread that waits in `sync` has no frame of that queue yet.
      for queue in Set(thread.frames.map(\.queue)) { threads[queue, default: []].append(thread.id) }
    }
    for address in snapshot.queues.keys {
      // An item may have begun since the queue was read; its thread was read after that.
      if snapshot.queues[address]!.items > 0 {
        snapshot.queues[address]!.word = snapshot.queues[address]!.word(in: memory)
      }
      let owner = snapshot.queues[address]!.word.owner
      if owner != 0 { snapshot.queues[address]!.holders = [owner] }
      switch snapshot.queues[address]!.kind {
      case .concurrent, .main, .runLoop, .global:
        snapshot.queues[address]!.holders += (threads[address] ?? []).filter { $0 != owner }
      case .serial, .workloop: break
      }
      guard owner != 0, snapshot.queues[address]!.items > 0, let thread = snapshot.thread(owner),
        case .worker = thread.role
      else { continue }
      let isSync = thread.frames.dropLast().contains { $0.queue == address }
      if !isSync { snapshot.queues[address]!.items -= 1 }
    }
  }
}
