import Dispatch
import Glibc

/// Bugs in the use of tasks, continuations, cancellation and streams.
extension ExplorePrograms {
  static let tasks: [(name: String, body: Body)] = [
    ("double-resume", .task(doubleResume)),
    ("reply-before-wait", .task(replyBeforeWait)),
    ("cancel-before-wait", .task(cancelBeforeWait)),
    ("cancel-assumed", .task(cancelAssumed)),
    ("group-order", .task(groupOrder)),
    ("group-exit", .task(groupExit)),
    ("stream-newest", .task(streamNewest)),
    ("stream-finished", .task(streamFinished)),
    ("weak-checked", .task(weakChecked)),
  ]

  /// The reply and the timeout both find that the continuation has not been resumed.
  @Sendable private static func doubleResume(mended: Bool) async {
    let group = DispatchGroup()
    await withCheckedContinuation { continuation in
      let isResumed = Cell(false)
      for name in ["reply", "timeout"] {
        DispatchQueue(label: name).async(group: group) {
          if mended {
            let isFirst = isResumed.update { resumed in
              defer { resumed = true }
              return !resumed
            }
            if isFirst { continuation.resume() }
          } else if !isResumed.value {
            isResumed.value = true
            continuation.resume()
          }
        }
      }
    }
    await withCheckedContinuation { continuation in
      group.notify(queue: .global()) { continuation.resume() }
    }
  }

  /// The reply comes before the continuation is stored, and resumes no task.
  @Sendable private static func replyBeforeWait(mended: Bool) async {
    let waiting = Cell<CheckedContinuation<Void, Never>?>(nil)
    let send = { @Sendable in DispatchQueue.global().async { waiting.value?.resume() } }
    if !mended { send() }
    await withCheckedContinuation { continuation in
      waiting.value = continuation
      if mended { send() }
    }
  }

  /// The task is cancelled between the look and the entry of its continuation, which is then never resumed.
  @Sendable private static func cancelBeforeWait(mended: Bool) async {
    enum State {
      case idle, cancelled
      case waiting(CheckedContinuation<Void, Never>)
    }
    let state = Cell(State.idle)
    let task = Task {
      if Task.isCancelled { return }
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          state.update {
            if mended, case .cancelled = $0 { continuation.resume() } else { $0 = .waiting(continuation) }
          }
        }
      } onCancel: {
        state.update {
          if case .waiting(let continuation) = $0 { continuation.resume() }
          $0 = .cancelled
        }
      }
    }
    await Task.yield()
    task.cancel()
    await task.value
  }

  /// The task may have ended before it is cancelled.
  @Sendable private static func cancelAssumed(mended: Bool) async {
    let task = Task {
      try Task.checkCancellation()
      return 1
    }
    task.cancel()
    let result = await task.result
    if case .success = result { require(mended, "the cancelled task has a value") }
  }

  /// Results of a group come in the order in which its tasks end.
  @Sendable private static func groupOrder(mended: Bool) async {
    let squares = await withTaskGroup(of: (Int, Int).self) { group in
      for number in 1...3 { group.addTask { (number, number * number) } }
      var results: [(Int, Int)] = []
      for await result in group { results.append(result) }
      if mended { results.sort { $0.0 < $1.0 } }
      return results.map(\.1)
    }
    require(squares == [1, 4, 9], "the squares are \(squares)")
  }

  /// The group is cancelled when the first task fails, and the other leaves its file open.
  @Sendable private static func groupExit(mended: Bool) async {
    struct Missing: Error {}
    let open = Cell(0)
    try? await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        open.increment()
        defer { if mended { open.update { $0 -= 1 } } }
        try Task.checkCancellation()
        if !mended { open.update { $0 -= 1 } }
      }
      group.addTask { throw Missing() }
      for try await _ in group {}
    }
    require(open.value == 0, "a file is left open")
  }

  /// A stream that keeps only the newest element, with a consumer that is slower than the producer.
  @Sendable private static func streamNewest(mended: Bool) async {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Int.self, bufferingPolicy: mended ? .unbounded : .bufferingNewest(2))
    DispatchQueue(label: "producer").async {
      for element in 1...3 { continuation.yield(element) }
      continuation.finish()
    }
    var sum = 0
    for await element in stream { sum += element }
    require(sum == 6, "elements are lost: the sum is \(sum)")
  }

  /// The first producer that ends finishes the stream of both.
  @Sendable private static func streamFinished(mended: Bool) async {
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    let group = DispatchGroup()
    let remaining = Cell(2)
    for producer in 1...2 {
      DispatchQueue(label: "producer \(producer)").async(group: group) {
        let isLast = remaining.update {
          $0 -= 1
          return $0 == 0
        }
        continuation.yield(producer)
        if isLast && !mended { continuation.finish() }
      }
    }
    if mended { group.notify(queue: .global()) { continuation.finish() } }
    var count = 0
    for await _ in stream { count += 1 }
    require(count == 2, "\(count) of 2 elements came")
  }

  /// The session goes away between the check and the use.
  @Sendable private static func weakChecked(mended: Bool) async {
    final class Session: Sendable {
      let name = "session"
    }
    final class Reference: @unchecked Sendable {
      // SAFETY: set once, before the object is shared.
      weak var session: Session?
      init(_ session: Session?) { self.session = session }
    }
    let owner = Cell<Session?>(Session())
    let reference = Reference(owner.value)
    let used = Cell(0)
    await withTaskGroup(of: Void.self) { group in
      group.addTask { owner.value = nil }
      group.addTask {
        if mended {
          if let session = reference.session { used.value += session.name.count }
        } else if reference.session != nil {
          let before = used.value
          used.value = before + reference.session!.name.count
        }
      }
    }
  }
}
