import Dispatch
import Glibc

/// Bugs in the use of queues, groups and semaphores.
extension ExplorePrograms {
  static let queues: [(name: String, body: Body)] = [
    ("lost-update", .plain(lostUpdate)),
    ("check-then-act", .plain(checkThenAct)),
    ("barrier-forgotten", .plain(barrierForgotten)),
    ("order-assumed", .plain(orderAssumed)),
    ("semaphore-twice", .plain(semaphoreTwice)),
    ("group-left-early", .plain(groupLeftEarly)),
    ("notify-before-enter", .plain(notifyBeforeEnter)),
    ("sync-cross", .plain(syncCross)),
    ("main-sync", .plain(mainSync)),
    ("suspend-assumed", .plain(suspendAssumed)),
    ("shutdown", .plain(shutdown)),
  ]

  /// Two queues each read the counter and write it back.
  @Sendable private static func lostUpdate(mended: Bool) {
    let visits = Cell(0)
    let group = DispatchGroup()
    for name in ["first", "second"] {
      DispatchQueue(label: name).async(group: group) {
        if mended { visits.increment() } else { visits.value += 1 }
      }
    }
    group.wait()
    require(visits.value == 2, "one of two visits is lost")
  }

  /// Two customers ask one after the other whether an article is left, then both take it.
  @Sendable private static func checkThenAct(mended: Bool) {
    let queue = DispatchQueue(label: "stock")
    let stock = Cell(1)
    DispatchQueue.concurrentPerform(iterations: 2) { _ in
      if mended {
        queue.sync { if stock.value > 0 { stock.value -= 1 } }
      } else if queue.sync(execute: { stock.value > 0 }) {
        queue.sync { stock.value -= 1 }
      }
    }
    require(stock.value == 0, "sold more than there was")
  }

  /// A writer that is no barrier, beside a reader.
  @Sendable private static func barrierForgotten(mended: Bool) {
    let queue = DispatchQueue(label: "settings", attributes: .concurrent)
    let name = Cell("old")
    let address = Cell("old")
    queue.async(flags: mended ? .barrier : []) {
      name.value = "new"
      address.value = "new"
    }
    queue.async { require(name.value == address.value, "read half of a change") }
    queue.sync(flags: .barrier) {}
  }

  /// The items of a concurrent queue start in order, but do not end in it.
  @Sendable private static func orderAssumed(mended: Bool) {
    let queue = DispatchQueue(label: "log", attributes: mended ? [] : .concurrent)
    let lines = Cell<[Int]>([])
    for line in 1...3 { queue.async { lines.update { $0.append(line) } } }
    queue.sync(flags: .barrier) {}
    require(lines.value == [1, 2, 3], "the lines are \(lines.value)")
  }

  /// A semaphore as a lock, which the path of an error releases twice.
  @Sendable private static func semaphoreTwice(mended: Bool) {
    let lock = DispatchSemaphore(value: 1)
    let inside = Cell(0)
    let group = DispatchGroup()
    for number in 1...3 {
      DispatchQueue.global().async(group: group) {
        lock.wait()
        require(inside.increment() == 1, "two inside the lock")
        inside.update { $0 -= 1 }
        if number == 2 && !mended { lock.signal() }
        lock.signal()
      }
    }
    group.wait()
  }

  /// The group is left before the result is there.
  @Sendable private static func groupLeftEarly(mended: Bool) {
    let group = DispatchGroup()
    let page = Cell<String?>(nil)
    group.enter()
    DispatchQueue.global().async {
      if !mended { group.leave() }
      page.value = "text"
      if mended { group.leave() }
    }
    group.wait()
    require(page.value != nil, "the group was left before the page was there")
  }

  /// The item enters the group itself, perhaps after the notification.
  @Sendable private static func notifyBeforeEnter(mended: Bool) {
    let group = DispatchGroup()
    let pages = Cell(0)
    let shown = DispatchSemaphore(value: 0)
    if mended { group.enter() }
    DispatchQueue(label: "loader").async {
      if !mended { group.enter() }
      pages.increment()
      group.leave()
    }
    group.notify(queue: .global()) {
      require(pages.value == 1, "notified before the loader entered")
      shown.signal()
    }
    shown.wait()
  }

  /// Two queues that wait for each other.
  @Sendable private static func syncCross(mended: Bool) {
    let disk = DispatchQueue(label: "disk")
    let network = DispatchQueue(label: "network")
    let group = DispatchGroup()
    disk.async(group: group) {
      if mended { network.async(group: group) {} } else { network.sync {} }
    }
    network.async(group: group) { disk.sync {} }
    group.wait()
  }

  /// The main queue waits for an item that needs the main queue.
  @Sendable private static func mainSync(mended: Bool) {
    let isLoaded = Cell(false)
    let loaded = DispatchSemaphore(value: 0)
    DispatchQueue(label: "loader").async {
      if mended {
        isLoaded.value = true
      } else {
        DispatchQueue.main.sync { isLoaded.value = true }
      }
      loaded.signal()
    }
    DispatchQueue(label: "events").async {
      DispatchQueue(label: "button").async {
        DispatchQueue.main.async {
          if !isLoaded.value { loaded.wait() }
          exit(0)
        }
      }
    }
    dispatchMain()
  }

  /// A suspended queue starts no further item, but the one that runs goes on.
  @Sendable private static func suspendAssumed(mended: Bool) {
    let queue = DispatchQueue(label: "writer")
    let isCopied = Cell(false)
    queue.async { require(!isCopied.value, "writes while its file is copied") }
    if mended { queue.sync { queue.suspend() } } else { queue.suspend() }
    isCopied.value = true
    isCopied.value = false
    queue.resume()
    queue.sync {}
  }

  /// A job is added between the look at `isOpen` and the last drain.
  @Sendable private static func shutdown(mended: Bool) {
    let queue = DispatchQueue(label: "jobs")
    let isOpen = Cell(true)
    let jobs = Cell(0)
    let accepted = Cell(0)
    let add = { @Sendable in
      guard isOpen.value else { return }
      accepted.increment()
      jobs.increment()
    }
    threads(
      { if mended { queue.sync(execute: add) } else { add() } },
      {
        queue.sync { isOpen.value = false }
        let drained = jobs.value
        queue.sync { require(drained == accepted.value, "a job was accepted after the last drain") }
      })
  }
}
