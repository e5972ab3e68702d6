import Glibc

/// Tells an item that holds a queue for long from many short ones.
///
/// One look at a process cannot do that: a busy queue always has a holder, and items that wait. So the report looks at
/// the holders many times, and believes only those that have been at the same item all the time: the item's node must
/// still be the first of the list, and nothing that another item changes may have changed. Short items that follow one
/// another differ in few words, so looks at them may agree by chance: many looks, and several words, make that
/// improbable. A process that is stopped stays the same in any case; there only the sleeps count that the engine has
/// noted. What it has noted of an entry may be the time of many items: a queue that always has another one keeps its
/// worker.
///
/// On a busy machine a thread may get no processor meanwhile, and so be at the same short item. So a holder that is awake
/// counts only once it has run for some time; until then it is watched longer. A look at the list may tell nothing, because
/// a producer has not linked its node yet. The last look must tell; until one does, the queue is watched longer, too.
struct HoldWatch {
  /// The least duration that counts, in nanoseconds.
  static let least: UInt64 = 100_000_000
  /// The least processor time of a holder that is awake.
  static let leastRun: UInt64 = 20_000_000
  private static let looks = 30
  private static let mostLooks = 240

  private let snapshot: EngineSnapshot
  private var links: LinkBudget { snapshot.links }
  /// Of the queues whose items have waited for the same item all the time: how long at least.
  private(set) var durations: [UInt64: UInt64] = [:]
  /// Their holders, as they were while the queues were watched: an item may have begun after its thread was read.
  private(set) var holders: [ThreadInfo] = []

  /// Reads threads once more.
  typealias ReadAgain = ([ThreadInfo]) -> [ThreadInfo]

  /// - Parameter queues: the queues that have a holder, and items that wait.
  init(_ snapshot: EngineSnapshot, _ queues: [QueueInfo], readAgain: ReadAgain? = nil) {
    self.snapshot = snapshot
    let process = snapshot.process
    for queue in queues {
      if let known = Self.sleep(of: queue, snapshot), known >= Self.least || process.core != nil {
        durations[queue.address] = known
      }
    }
    if process.core != nil || process.isFrozen {
      for queue in queues where durations[queue.address] == nil { durations[queue.address] = 0 }
      return
    }
    guard !queues.isEmpty, !process.isStopped else { return }
    // The verdicts begin with these. What one look has no budget for is not watched.
    let all = links.left
    links.beginLook(of: Self.looks + 3)
    let before = queues.sorted { ($0.items, $1.address) > ($1.items, $0.address) }.map {
      (queue: $0, first: oldest(of: $0), state: state(of: $0), runs: runs(of: $0))
    }
    var same = before.filter { $0.first != .ended && !$0.state.isEmpty }
    let cost = all - links.left
    let begin = UptimeClock.now
    for look in 0..<Self.mostLooks where !same.isEmpty {
      links.beginLook(of: Self.looks + 3 - look)
      if look >= Self.looks
        && same.allSatisfy({
          Self.haveRun($0.runs, runs(of: $0.queue)) && oldest(of: $0.queue) == .present
        })
      {
        break
      }
      // The last look needs the rest.
      guard links.left > 2 * cost else { break }
      // Not in step with what the process may do periodically.
      usleep(UInt32.random(in: 3000...5000))
      same.removeAll { oldest(of: $0.queue) == .ended || state(of: $0.queue) != $0.state }
    }
    links.beginLook(of: 1)
    // The state is read after the time: what ran since the last look may have been the next item.
    same.removeAll {
      !Self.haveRun($0.runs, runs(of: $0.queue)) || oldest(of: $0.queue) != .present
        || state(of: $0.queue) != $0.state
    }
    if let readAgain, !same.isEmpty {
      let ids = Set(same.flatMap(\.queue.holders))
      holders = readAgain(snapshot.threads.filter { ids.contains($0.id) })
      // What was read was of the same item.
      links.beginLook(of: 1)
      same.removeAll { oldest(of: $0.queue) == .ended || state(of: $0.queue) != $0.state }
    }
    let watched = UptimeClock.now - begin
    let kept = Set(same.map(\.queue.address))
    for (queue, _, _, _) in before {
      durations[queue.address] =
        kept.contains(queue.address) ? max(watched, durations[queue.address] ?? 0) : nil
    }
  }

  /// The processor time of each holder that was awake, in nanoseconds; nil if the kernel does not say.
  private func runs(of queue: QueueInfo) -> [UInt64?] {
    queue.holders.compactMap { snapshot.thread($0) }.filter { $0.wait == .running }.map { holder in
      ProcFile.read("/proc/\(snapshot.process.id)/task/\(holder.thread.idHere)/schedstat")
        .flatMap { $0.split(separator: " ").first }.flatMap { UInt64($0) }
    }
  }

  /// Whether one of the holders has run for long enough, or none was awake.
  static func haveRun(_ before: [UInt64?], _ after: [UInt64?]) -> Bool {
    before.isEmpty
      || zip(before, after).contains { before, after in
        guard let before, let after, after >= before else { return true }
        return after - before >= leastRun
      }
  }

  /// How long the engine says that a holder has slept while it holds the queue.
  private static func sleep(of queue: QueueInfo, _ snapshot: EngineSnapshot) -> UInt64? {
    queue.holders.compactMap { snapshot.thread($0) }
      .filter { holder in holder.frames.contains { $0.queue == queue.address } }.compactMap(\.blockedFor)
      .max()
  }

  /// The item that was the oldest of the queue, or of the queue in whose item a holder is. What a holder shares with other
  /// threads, such as a concurrent queue, says nothing about its item.
  private func oldest(of queue: QueueInfo) -> QueueInfo.OldestItem {
    let memory = snapshot.process.memory
    let inner = Set(
      queue.holders.compactMap { snapshot.thread($0) }.compactMap { memory.word($0.queueAddress) }
    )
    .subtracting([queue.address]).compactMap { snapshot.queues[$0] }
    .filter { $0.kind == .serial || $0.kind == .workloop }
    return .worst(of: ([queue] + inner).map { $0.oldestItem(in: memory, links) })
  }

  /// What changes when a holder begins another item: the owner, what the oldest entry of the list and that of the
  /// innermost queue's list run, the entries and frames of the holders. Not what a push changes. Nothing if there is no
  /// budget for it.
  private func state(of queue: QueueInfo) -> [UInt64] {
    guard links.take(4 + 6 * queue.holders.count) else { return [] }
    let memory = snapshot.process.memory
    let word = queue.word(in: memory)
    var state = [UInt64(word.owner), UInt64(word.readers)]
    state += queue.oldestEntry(in: memory)
    for holder in queue.holders.compactMap({ snapshot.thread($0) }) {
      state.append(memory.word(holder.frameAddress) ?? 0)
      if let inner = memory.word(holder.queueAddress) {
        state.append(inner)
        if inner != queue.address, let queue = snapshot.queues[inner] {
          state += queue.oldestEntry(in: memory)
        }
      }
      if holder.progressAddress != 0 {
        state.append(
          memory.number(at: holder.progressAddress).map { (entries: UInt32) in UInt64(entries) } ?? 0)
      }
    }
    return state
  }
}

extension QueueInfo {
  /// What a look at a list tells about the item that was its oldest.
  enum OldestItem {
    case present, unknown, ended

    /// What looks at several lists tell about the item that holds them all.
    static func worst(of looks: [OldestItem]) -> OldestItem {
      looks.contains(.ended) ? .ended : looks.contains(.unknown) ? .unknown : .present
    }
  }

  /// The way from the oldest node of a list to the newest, or the first part of a long way.
  ///
  /// Items that run the same function alike differ in their nodes only, and a stream of them uses few nodes in turn. A node
  /// whose item has ended is linked to other free nodes, perhaps in the order that they had in the list, until it is
  /// pushed again, behind what was the newest node. So while the item lasts, the links lead the way that they led at
  /// first, and from there to the newest node of the list, but not to the oldest again.
  struct ListPath {
    private let oldest: UInt64
    private let length: Int
    private let end: UInt64
    private let newest: UInt64
    /// The address of the word that has the newest node now.
    private let place: UInt64
    /// The last node of the way at the last look. All later looks pass it.
    private let lastSeen: LastSeen

    private final class LastSeen {
      var node: UInt64
      init(_ node: UInt64) { self.node = node }
    }

    static let longest = 256
    /// Nodes behind what was the newest. With more, one that has been pushed again may not be found.
    static let mostPushes = 4096

    /// - Parameter nodes: all of the list, the oldest first.
    init?(_ nodes: [UInt64], newestAt place: UInt64) {
      guard let first = nodes.first, let last = nodes.last else { return nil }
      self.place = place
      length = min(nodes.count - 1, Self.longest)
      (oldest, end, newest) = (first, nodes[length], last)
      lastSeen = LastSeen(last)
    }

    /// What the links tell about the item of the oldest node.
    func oldestItem(in memory: any TargetMemory, _ links: LinkBudget) -> OldestItem {
      guard links.take(length + 1) else { return .unknown }
      guard let newest = memory.word(place) else { return .unknown }
      // The item stays in its list, so an empty list is another item's.
      guard newest != 0 else { return .ended }
      var node = oldest
      for _ in 0..<length { node = memory.word(node) ?? 0 }
      if node != end { return .ended }
      node = self.newest
      var isPassed = false
      for _ in 0..<Self.mostPushes {
        isPassed = isPassed || node == lastSeen.node
        if node == newest {
          lastSeen.node = node
          return isPassed ? .present : .ended
        }
        guard links.take() else { return .unknown }
        // The memory of free nodes may have been given back.
        guard let next = memory.word(node) else { return .ended }
        if next == oldest { return .ended }
        // The last of some free nodes, or one behind which a producer has yet to link its own.
        if next == 0 {
          lastSeen.node = node
          return isPassed ? .unknown : .ended
        }
        node = next
      }
      return .present
    }
  }
}
