internal import CConcourse

// What a thread of normal class waits for is served in the default band, also if it is for a band of lowered threads.
//
// | the thread waits in | and waits for | what the default band serves, too |
// |---|---|---|
// | `sync`, `asyncAndWait` | the queue | the queue, as long as a thread waits for it (Queue/Hierarchy/DispatchQueue+Boost.swift) |
// | the same, behind a barrier | items that run concurrently | the lowered roots' entries, up to the last of them |
// | `DispatchGroup.wait`, `DispatchWorkItem.wait` | items in lowered roots | likewise |
//
// The lowered band loses nothing: a queue gets a second entry, in a root of the default band, and the entries of a
// lowered root may be taken by workers of either band.
//
// Entries of a root cannot overtake one another, since items of a global queue start in order. So the oldest are
// *boosted* together, up to the last that the thread waits for. A few entries of the default root, the takers, each run
// the oldest boosted entry and then put themselves at the end of their root again. There are fewer takers than
// processors, so that long lowered items do not fill the default band. Takers are entries like all others, so the
// protocols of the pool do not know of them.
//
// A boost is a hint. An entry that moves from a queue to a root while the thread looks may be missed, and so is what the
// thread cannot look at without waiting for another thread. ROOTS.md has the limits.

extension Runtime {
  /// A thread of normal class is about to sleep until the entries that match have run. Boosts them, if they lie in a lowered
  /// root.
  static func boost(upTo matches: (NodePointer) -> Bool) {
    // In a forked child there is no worker, and a thread of the parent may have held a lock.
    guard !Process.isForkedChild else { return }
    // The runtime's own table: a program may wait for a group before it has a queue.
    for band in shared.bands where band.isLowered {
      for root in band.roots { root._withUnsafeGuaranteedRef { $0.boost(upTo: matches) } }
    }
  }
}

/// How many of the oldest entries of a root are boosted. GUARDED BY the root's `consumer`.
struct BoostedEntries: ~Copyable {
  private let count = SeldomChanged<UInt>(0)
  /// The entries of the default root that take them: in the root, or running what they have taken.
  private let takers = SeldomChanged<UInt>(0)

  var isEmpty: Bool { count.value == 0 }

  /// - Returns: how many takers the caller must put to the default root.
  func boost(_ oldest: UInt, processors: Int) -> UInt {
    count.value = max(count.value, oldest)
    let needed = min(count.value, UInt(max(1, processors - 1)))
    guard needed > takers.value else { return 0 }
    defer { takers.value = needed }
    return needed - takers.value
  }

  /// The oldest entry is about to be taken.
  @inline(never)
  func take() { count.value -= 1 }

  /// A taker ends.
  func endTaker() { takers.value -= 1 }
}

extension RootQueue {
  /// How many of the oldest entries a waiting thread looks at.
  private static var boostReach: UInt { UInt(Tuning.value(128, inModel: 8)) }

  /// Boosts the oldest entries, up to the last that `matches`.
  fileprivate func boost(upTo matches: (NodePointer) -> Bool) {
    // The holder may be a lowered thread without a processor: the caller does not wait for it.
    guard hasWork && tryToConsume() else { return }
    let last = lastAmongOldest(where: matches)
    let takers =
      last > 0 ? boosted.boost(last, processors: band._withUnsafeGuaranteedRef { $0.shard.width }) : 0
    consumer.unlock()
    for _ in 0..<takers { pushTaker() }
  }

  /// The position of the last of the oldest entries that `matches`, counted from 1; 0 if there is none. Consumer only.
  func lastAmongOldest(where matches: (NodePointer) -> Bool) -> UInt {
    var (position, last): (UInt, UInt) = (0, 0)
    var next = firstIfLinked
    // An entry that is not linked yet ends the look: its producer may be a thread without a processor.
    while let node = next, position < Self.boostReach {
      position += 1
      if matches(node) { last = position }
      next = list.next(after: node)
    }
    return last
  }

  /// Becomes the consumer, without waiting for a thread that may have no processor.
  func tryToConsume() -> Bool { consumer.tryLockBriefly() }

  private func pushTaker() {
    Runtime.root(at: .default)._withUnsafeGuaranteedRef {
      let taker = NodeMagazine.make(.boosted, level: .default)
      taker.payload.initializeMemory(as: Unmanaged<RootQueue>.self, to: .passUnretained(self))
      $0.push(taker)
    }
  }

  /// Runs the oldest boosted entry, unless there is none left.
  @inline(never)
  func runBoosted() {
    consumer.lock()
    var node: NodePointer?
    if !boosted.isEmpty {
      node = popFirst()
    }
    consumer.unlock()
    if let node { node.run(for: client) }
    let goesOn = consumer.withLock {
      if boosted.isEmpty { boosted.endTaker() }
      return !boosted.isEmpty
    }
    if goesOn { pushTaker() }
  }
}

/// Runs the oldest boosted entry. Called by workers of the default band.
@c(concourse_run_boosted)
func runBoosted(_ entry: UnsafeMutableRawPointer, _: UnsafeMutableRawPointer?) {
  // SAFETY: only `pushTaker` makes entries of this kind.
  let node = entry.assumingMemoryBound(to: WorkNode.self)
  let root = node.payload.load(as: Unmanaged<RootQueue>.self)
  NodeMagazine.recycle(node)
  root._withUnsafeGuaranteedRef { $0.runBoosted() }
}
