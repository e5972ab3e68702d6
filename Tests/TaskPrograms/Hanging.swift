import Concourse

/// Programs that hang where no other thread takes the place of one that blocks in a task.
enum Hanging {
  static let all: [Program] = [
    // What blocks.
    .hanging("semaphore") { signalled(by: { $0.wait() }) },
    .hanging("semaphore-with-timeout") { signalled(by: { _ = $0.wait(timeout: .now() + .seconds(3600)) }) },
    .hanging("group") { left(by: { $0.wait() }) },
    .hanging("group-with-timeout") { left(by: { _ = $0.wait(timeout: .now() + .seconds(3600)) }) },
    .hanging("work-item") {
      let items = Items()
      return .init(block: { items.all[$0].wait() }, release: { for item in items.all { item.perform() } })
    },
    .hanging("sync") {
      let queue = DispatchQueue(label: "ledger")
      return held({ queue.async(execute: $0) }, { queue.sync {} })
    },
    .hanging("sync-on-target") {
      let target = DispatchQueue(label: "disk")
      let queue = DispatchQueue(label: "file", target: target)
      return held({ target.async(execute: $0) }, { queue.sync {} })
    },
    .hanging("barrier-sync") {
      let queue = DispatchQueue(label: "catalogue", attributes: .concurrent)
      return held({ queue.async(execute: $0) }, { queue.sync(flags: .barrier) {} })
    },
    .hanging("reader-behind-barrier") {
      let queue = DispatchQueue(label: "prices", attributes: .concurrent)
      return held({ queue.async(flags: .barrier, execute: $0) }, { queue.sync {} })
    },
    .hanging("async-and-wait") {
      let queue = DispatchQueue(label: "index")
      return held({ queue.async(execute: $0) }, { queue.asyncAndWait {} })
    },
    .hanging("main-queue") {
      var scene = held({ DispatchQueue.main.async(execute: $0) }, { DispatchQueue.main.sync {} })
      scene.others = 0
      return scene
    },
    .hanging("once") {
      let once = DispatchOnce()
      return held({ body in DispatchQueue.global().async { once.perform(body) } }, { once.perform {} })
    },
    .hanging("parallel-loop") {
      signalled(by: { semaphore in DispatchQueue.concurrentPerform(iterations: 1) { _ in semaphore.wait() } })
    },
    .hanging("task-awaited-by-thread") {
      let gate = Gate()
      return .init(block: { _ in runBlocking { await gate.opened() } }, release: { gate.open() })
    },

    // Where it blocks.
    .hanging("named-task") {
      signalled(
        by: { $0.wait() }, start: { number, block in Task.detached(name: "loader \(number)") { block() } })
    },
    .hanging("child-task") {
      signalled(
        by: { $0.wait() },
        start: { _, block in Task.detached { await withTaskGroup(of: Void.self) { $0.addTask { block() } } } }
      )
    },
    .hanging("async-let") {
      signalled(
        by: { $0.wait() },
        start: { _, block in
          Task.detached {
            async let child: Void = block()
            await child
          }
        })
    },
    .hanging("actor") {
      signalled(by: { $0.wait() }, start: { _, block in Task.detached { await Holder().call(block) } })
    },

    // What releases it.
    .hanging("released-by-actor") {
      let holder = Holder()
      return signalled(by: { $0.wait() }, before: { await holder.call {} })
    },
    .hanging("released-by-stream") {
      signalled(
        by: { $0.wait() },
        before: {
          let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
          Task.detached { continuation.yield(1) }
          for await _ in stream { break }
        })
    },
    .hanging("released-by-sleeper") {
      signalled(by: { $0.wait() }, before: { try? await Task.sleep(for: .milliseconds(1)) })
    },
    .hanging("released-by-continuation") {
      signalled(
        by: { $0.wait() },
        before: {
          await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume() }
          }
        })
    },
    .hanging("released-at-low-priority") {
      var scene = signalled(
        by: { $0.wait() }, start: { _, block in Task.detached(priority: .high) { block() } })
      scene.priority = .background
      return scene
    },
  ]

  /// Two tasks that wait for a semaphore.
  private static func signalled(
    by wait: @escaping @Sendable (DispatchSemaphore) -> Void,
    start: @escaping @Sendable (Int, @escaping @Sendable () -> Void) -> Void = { _, block in
      Task.detached { block() }
    },
    before: @escaping @Sendable () async -> Void = {}
  ) -> Program.Scene {
    let semaphore = DispatchSemaphore(value: 0)
    return .init(
      start: start, block: { _ in wait(semaphore) },
      release: {
        await before()
        for _ in 0..<2 { semaphore.signal() }
      })
  }

  /// Two tasks that wait for a group.
  private static func left(by wait: @escaping @Sendable (DispatchGroup) -> Void) -> Program.Scene {
    let group = DispatchGroup()
    group.enter()
    return .init(block: { _ in wait(group) }, release: { group.leave() })
  }

  /// Two tasks that wait for what an item holds until a third task lets it go.
  /// - Parameters:
  ///   - hold: runs the closure as an item of a queue.
  private static func held(
    _ hold: (@escaping @Sendable () -> Void) -> Void, _ wait: @escaping @Sendable () -> Void
  ) -> Program.Scene {
    let (isHeld, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    hold {
      isHeld.signal()
      end.wait()
    }
    isHeld.wait()
    return .init(others: 1, block: { _ in wait() }, release: { end.signal() })
  }

  /// What people write to call an async function from a synchronous one.
  private static func runBlocking(_ body: @escaping @Sendable () async -> Void) {
    let ended = DispatchSemaphore(value: 0)
    Task.detached {
      await body()
      ended.signal()
    }
    ended.wait()
  }
}

// SAFETY: constant, and work items may be used by any thread.
private struct Items: @unchecked Sendable {
  let all = [DispatchWorkItem {}, DispatchWorkItem {}]
}

/// An actor that runs closures.
private actor Holder {
  func call(_ body: @Sendable () -> Void) { body() }
}

/// Opens once.
private struct Gate: Sendable {
  private let opening = DispatchGroup()

  init() { opening.enter() }

  func opened() async { await opening.finished() }
  func open() { opening.leave() }
}
