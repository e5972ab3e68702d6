import Dispatch
import Glibc

/// Bugs in the use of actors, some of them together with queues.
extension ExplorePrograms {
  static let actors: [(name: String, body: Body)] = [
    ("actor-reentrancy", .task(actorReentrancy)),
    ("cache-twice", .task(cacheTwice)),
    ("get-and-set", .task(getAndSet)),
    ("transfer-seen", .task(transferSeen)),
    ("limiter", .task(limiter)),
    ("latch-missed", .task(latchMissed)),
    ("observer-removed", .task(observerRemoved)),
    ("task-order", .task(taskOrder)),
    ("queue-and-actor", .task(queueAndActor)),
    ("lock-across-await", .task(lockAcrossAwait)),
    ("mirror-order", .task(mirrorOrder)),
  ]

  /// Another withdrawal runs while the first awaits the bank.
  @Sendable private static func actorReentrancy(mended: Bool) async {
    actor Bank {
      func book() {}
    }
    actor Account {
      let bank = Bank()
      var balance = 100

      func withdraw(_ amount: Int, mended: Bool) async {
        guard balance >= amount else { return }
        if !mended { await bank.book() }
        balance -= amount
        if mended { await bank.book() }
      }
    }
    let account = Account()
    async let first: Void = account.withdraw(80, mended: mended)
    async let second: Void = account.withdraw(80, mended: mended)
    _ = await (first, second)
    require(await account.balance >= 0, "the account is overdrawn")
  }

  /// Two callers miss the cache, and both load the page.
  @Sendable private static func cacheTwice(mended: Bool) async {
    actor Server {
      var loads = 0
      func load() -> Int {
        loads += 1
        return loads
      }
    }
    actor Cache {
      let server = Server()
      var page: Int?
      var loading: Task<Int, Never>?

      func get(mended: Bool) async -> Int {
        if let page { return page }
        if let loading { return await loading.value }
        if mended {
          let task = Task { await server.load() }
          loading = task
          return await task.value
        }
        let loaded = await server.load()
        page = loaded
        return loaded
      }
    }
    let cache = Cache()
    async let first = cache.get(mended: mended)
    async let second = cache.get(mended: mended)
    let pages = await [first, second]
    require(pages == [1, 1], "loaded twice")
  }

  /// Each step is safe in the actor, both together are not.
  @Sendable private static func getAndSet(mended: Bool) async {
    actor Counter {
      var value = 0
      func set(_ value: Int) { self.value = value }
      func increment() { value += 1 }
    }
    let counter = Counter()
    await withTaskGroup(of: Void.self) { group in
      for _ in 1...2 {
        group.addTask {
          if mended { await counter.increment() } else { await counter.set(await counter.value + 1) }
        }
      }
    }
    require(await counter.value == 2, "one of two increments is lost")
  }

  /// The sum is taken in the middle of a transfer between two actors.
  @Sendable private static func transferSeen(mended: Bool) async {
    actor Account {
      var balance: Int
      init(_ balance: Int) { self.balance = balance }
      func add(_ amount: Int) { balance += amount }
    }
    let left = Account(50)
    let right = Account(50)
    async let transfer: Void = {
      await left.add(-10)
      await right.add(10)
    }()
    if mended { await transfer }
    let sum = await left.balance + right.balance
    await transfer
    require(sum == 100, "the sum was \(sum) for a moment")
  }

  /// Between the hand-over of a permit and the start of the one who waited, a third takes the permit.
  @Sendable private static func limiter(mended: Bool) async {
    actor Limiter {
      private var free = 1
      private var waiting: [CheckedContinuation<Void, Never>] = []

      func enter(mended: Bool) async {
        if free == 0 {
          await withCheckedContinuation { waiting.append($0) }
          if mended { return }
        }
        free -= 1
      }

      func leave(mended: Bool) {
        if !mended || waiting.isEmpty { free += 1 }
        if !waiting.isEmpty { waiting.removeFirst().resume() }
      }
    }
    let limiter = Limiter()
    let inside = Cell(0)
    await withTaskGroup(of: Void.self) { group in
      for _ in 1...3 {
        group.addTask {
          await limiter.enter(mended: mended)
          require(inside.increment() == 1, "two have the one permit")
          await Task.yield()
          inside.update { $0 -= 1 }
          await limiter.leave(mended: mended)
        }
      }
    }
  }

  /// The latch opens between the look at it and the entry into its list.
  @Sendable private static func latchMissed(mended: Bool) async {
    actor Latch {
      var isOpen = false
      private var waiting: [CheckedContinuation<Void, Never>] = []

      func add(_ continuation: CheckedContinuation<Void, Never>, mended: Bool) {
        if mended && isOpen { continuation.resume() } else { waiting.append(continuation) }
      }

      func open() {
        isOpen = true
        for continuation in waiting { continuation.resume() }
      }
    }
    let latch = Latch()
    async let opened: Void = {
      for _ in 1...5 { await Task.yield() }
      await latch.open()
    }()
    if await !latch.isOpen {
      await withCheckedContinuation { continuation in
        Task { await latch.add(continuation, mended: mended) }
      }
    }
    await opened
  }

  /// An observer hears of a change after its removal has returned.
  @Sendable private static func observerRemoved(mended: Bool) async {
    actor Observer {
      private var isRemoved = false
      func remove() { isRemoved = true }
      func hear(mended: Bool) {
        if mended && isRemoved { return }
        require(!isRemoved, "hears of a change after it was removed")
      }
    }
    actor Center {
      private var observers: [Observer] = []
      func add(_ observer: Observer) { observers.append(observer) }
      func removeAll() { observers = [] }
      func post(mended: Bool) async { for observer in observers { await observer.hear(mended: mended) } }
    }
    let center = Center()
    let observer = Observer()
    await center.add(observer)
    async let posted: Void = center.post(mended: mended)
    await center.removeAll()
    await observer.remove()
    await posted
  }

  /// Two tasks reach the actor in any order.
  @Sendable private static func taskOrder(mended: Bool) async {
    actor Log {
      var lines: [Int] = []
      func append(_ line: Int) { lines.append(line) }
    }
    let log = Log()
    let first = Task { await log.append(1) }
    if mended { await first.value }
    let second = Task { await log.append(2) }
    await first.value
    await second.value
    require(await log.lines == [1, 2], "the second line came first")
  }

  /// The actor waits for the queue, whose item waits for the actor.
  @Sendable private static func queueAndActor(mended: Bool) async {
    let queue = DispatchQueue(label: "files")
    actor Index {
      private var entries = 0
      func add() { entries += 1 }
      func save(_ queue: DispatchQueue) { queue.sync {} }
    }
    let index = Index()
    let added = DispatchSemaphore(value: 0)
    queue.async {
      Task {
        await index.add()
        added.signal()
      }
      if !mended { added.wait() }
    }
    for _ in 1...20 { await Task.yield() }
    await index.save(queue)
  }

  /// A task keeps a lock while it awaits an actor, whose job waits for the lock.
  @Sendable private static func lockAcrossAwait(mended: Bool) async {
    let lock = DispatchSemaphore(value: 1)
    actor Store {
      func save(_ lock: DispatchSemaphore) { take(lock) }
      func note() {}
      private nonisolated func take(_ lock: DispatchSemaphore) {
        lock.wait()
        lock.signal()
      }
    }
    let store = Store()
    @Sendable func take() { lock.wait() }
    async let saved: Void = store.save(lock)
    take()
    if mended { lock.signal() }
    await store.note()
    if !mended { lock.signal() }
    await saved
  }

  /// The actor changes in order, what is shown of it does not.
  @Sendable private static func mirrorOrder(mended: Bool) async {
    let queue = DispatchQueue(label: "display", attributes: mended ? [] : .concurrent)
    let shown = Cell(0)
    actor Model {
      private var value = 0
      func set(_ value: Int, _ queue: DispatchQueue, _ shown: Cell<Int>) {
        self.value = value
        queue.async { shown.value = value }
      }
    }
    let model = Model()
    await model.set(1, queue, shown)
    await model.set(2, queue, shown)
    await withCheckedContinuation { continuation in
      queue.async(flags: .barrier) { continuation.resume() }
    }
    require(shown.value == 2, "shows \(shown.value), the value is 2")
  }
}
