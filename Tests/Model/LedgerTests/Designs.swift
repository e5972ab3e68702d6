@testable import ConcourseModel

// Known designs of a pool, small, for the hindcast: what others have published about them must come out of the ledger
// before it predicts anything. They use the engine's atomics and futexes, so the same scheduler counts them.

/// Words on a line of their own.
struct Words: @unchecked Sendable {
  // SAFETY: never freed; all that is done with the words are atomic operations.
  private let base: UnsafeMutablePointer<Atomic<UInt32>>

  init() {
    base = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 64)
      .bindMemory(to: Atomic<UInt32>.self, capacity: 16)
    for index in 0..<16 { (base + index).initialize(to: Atomic(0)) }
  }

  subscript(_ index: Int) -> UnsafeMutablePointer<Atomic<UInt32>> { base + index }

  // ORDERING: sequentially consistent, here and below: the designs are counted, not proved.
  func load(_ index: Int = 0) -> UInt32 { base[index].load(ordering: .sequentiallyConsistent) }
  func store(_ value: UInt32, _ index: Int = 0) {
    base[index].store(value, ordering: .sequentiallyConsistent)
  }
  // ORDERING: as above.
  func exchange(_ value: UInt32, _ index: Int = 0) -> UInt32 {
    base[index].exchange(value, ordering: .sequentiallyConsistent)
  }
  // ORDERING: as above.
  func add(_ value: UInt32, _ index: Int = 0) -> UInt32 {
    base[index].wrappingAdd(value, ordering: .sequentiallyConsistent).newValue
  }
  // ORDERING: as above.
  func subtract(_ value: UInt32, _ index: Int = 0) -> UInt32 {
    base[index].wrappingSubtract(value, ordering: .sequentiallyConsistent).newValue
  }
  // ORDERING: as above.
  func replace(_ old: UInt32, by new: UInt32, _ index: Int = 0) -> Bool {
    base[index].compareExchange(expected: old, desired: new, ordering: .sequentiallyConsistent).exchanged
  }

  /// Spins until `release` makes the word another than 0.
  func spin(_ index: Int) {
    while load(index) == 0 { Model.spin(on: base[index].address) }
  }
  func release(_ value: UInt32, _ index: Int) {
    store(value, index)
    Model.release(base[index].address)
  }

  /// Sleeps while the word is 0. `wake` sets it to 1.
  func sleep(_ index: Int = 0) {
    while load(index) == 0 { _ = Futex.wait(base[index], expected: 0) }
    store(0, index)
  }
  func wake(_ index: Int = 0) {
    store(1, index)
    Futex.wake(base[index], count: 1)
  }
}

/// A lock whose waiters queue up, each on a line of its own, as spin locks of kernels.
struct QueueLock {
  private let tail = Words()
  private let waiters: [Words]

  /// - Parameter threads: the number of the last thread that may take it.
  init(threads: Int) { waiters = (0...threads).map { _ in Words() } }

  func lock(_ me: Int) {
    waiters[me].store(0, 0)
    waiters[me].store(0, 1)
    let before = Int(tail.exchange(UInt32(me) + 1))
    guard before != 0 else { return }
    waiters[before - 1].release(UInt32(me) + 1, 1)
    waiters[me].spin(0)
  }

  func unlock(_ me: Int) {
    if waiters[me].load(1) == 0 {
      if tail.replace(UInt32(me) + 1, by: 0) { return }
      waiters[me].spin(1)
    }
    waiters[Int(waiters[me].load(1)) - 1].release(1, 0)
  }
}

/// A lock whose waiters spin for a while and then sleep, as mutexes of programs.
struct SleepingLock {
  private let word = Words()

  func lock() {
    if word.replace(0, by: 1) { return }
    for _ in 0..<100 {
      if word.load() == 0, word.replace(0, by: 1) { return }
      if word.load() == 2 { break }
      Processor.pause()
    }
    while word.exchange(2) != 0 { _ = Futex.wait(word[0].pointee, expected: 2) }
  }

  func unlock() {
    if word.exchange(0) == 2 { Futex.wake(word[0].pointee, count: 1) }
  }
}

// MARK: The work queues of a kernel

/// Pools of kernel threads, each with a lock, a list and idle workers: one pool for so many processors. As published, a
/// thread on each processor has one item in flight: it submits it, sleeps until it is done, and submits the next. All
/// pools share one count of active items.
struct KernelPools {
  let processors: Int
  /// Processors of one pool: all, 8, or 1.
  let share: Int
  /// Whether an idle worker takes from the other pools of its cache group.
  var steals = false

  func start(itemsEach: Int) {
    let pools = (0..<processors / share).map { number in Pool(number, threads: 2 * processors) }
    let active = Words()
    let answers = (0..<processors).map { _ in Words() }
    // SAFETY: coroutines share one system thread.
    nonisolated(unsafe) var left = processors * itemsEach
    // Threads 1 to P submit, P + 1 to 2P work; both on processors 0 to P - 1 (`Costs.processor`).
    for number in 0..<processors {
      Model.thread("submits") {
        for _ in 0..<itemsEach {
          raise(active)
          pools[number / share].submit(number, me: number + 1)
          answers[number].sleep()
        }
      }
    }
    for number in 0..<processors {
      Model.background("works") {
        let me = processors + 1 + number
        let pool = pools[number / share]
        let bed = Words()
        var hasRun = false
        while left > 0 {
          // The count of active items falls under the lock under which the next item is taken.
          let item = pool.take(me, bed, orFrom: steals ? pools : []) {
            if hasRun { _ = active.subtract(1) }
          }
          hasRun = true
          Ledger.operation()
          left -= 1
          answers[item].wake()
        }
      }
    }
    Model.run()
  }

  /// A count with a limit is raised by a look and a compare-exchange.
  private func raise(_ count: Words) {
    var known = count.load()
    while true {
      // ORDERING: as in `Words`.
      let (isRaised, original) = count[0].pointee.compareExchange(
        expected: known, desired: known + 1, ordering: .sequentiallyConsistent)
      if isRaised { return }
      known = original
    }
  }

  private final class Pool: @unchecked Sendable {
    private let number: Int
    private let lock: QueueLock
    /// The line of the list's head, and that of the idle workers' list.
    private let (list, idle) = (Words(), Words())
    private var items: [(item: Int, line: Words)] = []
    private var sleepers: [Words] = []

    init(_ number: Int, threads: Int) { (self.number, lock) = (number, QueueLock(threads: threads)) }

    func submit(_ item: Int, me: Int) {
      let line = Words()
      lock.lock(me)
      line.store(1)
      list.store(UInt32(items.count) + 1)
      items.append((item, line))
      // The worker is woken under the lock, as in the kernel that was measured.
      wakeOne()
      lock.unlock(me)
    }

    private func wakeOne() {
      guard let bed = sleepers.popLast() else { return }
      idle.store(UInt32(sleepers.count))
      bed.wake()
    }

    private func takeLocked() -> Int? {
      guard list.load() > 0, !items.isEmpty else { return nil }
      let (item, line) = items.removeFirst()
      list.store(UInt32(items.count))
      _ = line.load()
      return item
    }

    func take(_ me: Int, _ bed: Words, orFrom others: [Pool], whenLocked: () -> Void) -> Int {
      lock.lock(me)
      whenLocked()
      while true {
        if let item = takeLocked() {
          if !items.isEmpty { wakeOne() }
          lock.unlock(me)
          return item
        }
        sleepers.append(bed)
        idle.store(UInt32(sleepers.count))
        lock.unlock(me)

        if let item = steal(me, from: others) {
          // A wake-up of this worker that comes now is in vain.
          return item
        }
        bed.sleep()
        lock.lock(me)
      }
    }

    private func steal(_ me: Int, from others: [Pool]) -> Int? {
      for other in others where other !== self && other.number / 8 == number / 8 && other.list.load() > 0 {
        other.lock.lock(me)
        defer { other.lock.unlock(me) }
        if let item = other.takeLocked() { return item }
      }
      return nil
    }
  }
}

// MARK: The injection queue of a runtime for tasks

/// Threads outside of a runtime share out 12,800 tasks and submit them through an injection queue of so many shards, each
/// with a mutex; a thread keeps to its shard. A worker for each processor takes a batch at a time, and sleeps when it
/// finds nothing. At most one worker searches.
struct InjectionQueue {
  let workers: Int
  let shards: Int
  static let tasks = 12_800

  func start(spawners: Int) {
    let all = (0..<shards).map { _ in Shard() }
    let (mask, searching) = (Words(), Words())
    let each = Self.tasks / spawners
    // SAFETY: coroutines share one system thread.
    nonisolated(unsafe) var left = each * spawners
    // SAFETY: as above.
    nonisolated(unsafe) var beds: [Words] = []
    for number in 0..<spawners {
      Model.thread("spawns") {
        let shard = all[number % shards]
        for _ in 0..<each {
          shard.push()
          if mask.load() & 1 << UInt32(number % shards) == 0 {
            var known = mask.load()
            while !mask.replace(known, by: known | 1 << UInt32(number % shards)) { known = mask.load() }
          }
          // A worker is woken if none searches.
          if searching.load(0) == 0, searching.load(1) > 0, searching.replace(0, by: 1) {
            if let bed = beds.popLast() {
              _ = searching.subtract(1, 1)
              bed.wake()
            } else {
              searching.store(0)
            }
          }
        }
      }
    }
    for number in 0..<workers {
      Model.background("works") {
        let bed = Words()
        while left > 0 {
          var found = 0
          for offset in 0..<shards where found == 0 {
            let shard = (number + offset) % shards
            if mask.load() & 1 << UInt32(shard) != 0 {
              found = all[shard].take(workers) {
                var known = mask.load()
                while !mask.replace(known, by: known & ~(1 << UInt32(shard))) { known = mask.load() }
              }
            }
          }
          if found == 0 {
            searching.store(0)
            beds.append(bed)
            _ = searching.add(1, 1)
            // A task that came meanwhile is looked for once more.
            if mask.load() == 0 {
              bed.sleep()
            } else if beds.contains(where: { $0[0] == bed[0] }) {
              beds.removeAll { $0[0] == bed[0] }
              _ = searching.subtract(1, 1)
            }
            continue
          }
          searching.store(0)
          for _ in 0..<found {
            Ledger.operation()
            left -= 1
          }
        }
      }
    }
    Model.run()
  }

  private final class Shard: @unchecked Sendable {
    private let lock = SleepingLock()
    private let list = Words()
    private var items: [Words] = []

    func push() {
      let line = Words()
      line.store(1)
      lock.lock()
      items.append(line)
      list.store(UInt32(items.count))
      lock.unlock()
    }

    /// A fair share of what is there, 128 at most.
    func take(_ workers: Int, whenEmpty: () -> Void) -> Int {
      lock.lock()
      let count = min(items.count, min(items.count / workers + 1, 128))
      for _ in 0..<count { _ = items.removeFirst().load() }
      list.store(UInt32(items.count))
      if items.isEmpty { whenEmpty() }
      lock.unlock()
      return count
    }
  }
}
