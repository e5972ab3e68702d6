// The reference model of the contract: which logs of a program are allowed, and what is still owed. It knows
// no runtime. The comments cite the statements of CONTRACT.md.

/// Judges one log of one program. All positions are indices of events.
struct Contract {
  /// An item, handler or notification that ran, or will.
  struct Run {
    let name: String
    let queue: Int
    let isBarrier: Bool
    /// The submission happened between these.
    var call: Int
    var submitted: Int
    var begin: Int
    var end: Int
    /// The runtime cannot have started it before this event.
    var earliest: Int
  }

  static let never = Int.max
  let program: Program
  let log: Log
  let operations: [Operation]
  private(set) var violations: [String] = []
  private var at: [Event.What: [Int: [Int]]] = [:]
  private var runs: [Run] = []
  /// The runs of operations, by number.
  private var runOf: [Int: Int] = [:]

  init(_ program: Program, _ log: Log) {
    self.program = program
    self.log = log
    operations = program.operations
    for (position, event) in log.events.enumerated() {
      at[event.what, default: [:]][event.number, default: []].append(position)
    }
  }

  /// The first position of an event, or `never`.
  private func first(_ what: Event.What, _ number: Int) -> Int { at[what]?[number]?.first ?? Self.never }
  private func all(_ what: Event.What, _ number: Int) -> [Int] { at[what]?[number] ?? [] }
  private func event(_ position: Int) -> Event { log.events[position] }
  private mutating func violate(_ text: String) { violations.append(text) }

  /// Everything that the log breaks.
  static func judge(_ program: Program, _ log: Log) -> [String] {
    var contract = Contract(program, log)
    contract.collectRuns()
    contract.checkRuns()
    contract.checkExclusion()
    contract.checkOrder()
    contract.checkSuspension()
    contract.checkItems()
    contract.checkGroups()
    contract.checkSemaphores()
    for source in program.sources.indices { contract.checkSource(source) }
    contract.checkResults()
    return contract.violations
  }

  // MARK: - Items on queues

  private mutating func collectRuns() {
    for operation in operations {
      let number = operation.number
      let call = first(.call, number)
      guard call != Self.never else { continue }
      var (queue, isBarrier, isDelayed): (Int?, Bool, Bool) = (nil, false, false)
      switch operation.verb {
      case .async(let on, let barrier, _, _): (queue, isBarrier) = (on, barrier)
      case .sync(let on, let barrier), .asyncAndWait(let on, let barrier): (queue, isBarrier) = (on, barrier)
      case .after(let on, _), .notify(_, let on): (queue, isDelayed) = (on, true)
      case .item(let on, let use): (queue, isBarrier) = (on, use.barrier)
      case .enter(_, let on), .handOver(_, let on): queue = on
      default: break
      }
      guard let queue else { continue }
      let (begin, end) = (first(.begin, number), first(.end, number))
      runOf[number] = runs.count
      runs.append(
        Run(
          name: "operation \(number)", queue: queue, isBarrier: isBarrier, call: call,
          submitted: isDelayed ? begin : min(begin, first(.back, number)), begin: begin, end: end,
          earliest: call))
      let note = first(.noteBegin, number)
      if case .item(_, let use) = operation.verb, let queue = use.notifies, note != Self.never {
        runs.append(
          Run(
            name: "the notification of \(number)", queue: queue, isBarrier: false, call: call,
            submitted: note,
            begin: note, end: first(.noteEnd, number), earliest: call))
      }
    }
    for (number, source) in program.sources.enumerated() {
      var last = -1
      for (begin, end) in zip(all(.handlerBegin, number), all(.handlerEnd, number) + [Self.never]) {
        runs.append(
          Run(
            name: "a handler of source \(number)", queue: source.queue, isBarrier: false, call: last,
            submitted: begin,
            begin: begin, end: end, earliest: last))
        last = end
      }
    }
    for item in program.items.indices { collectRuns(ofItem: item) }
  }

  private mutating func collectRuns(ofItem item: Int) {
    var calls: [Int: Int] = [:]
    for case (let call, .submit(item, let queue)) in operations.map({ (first(.call, $0.number), $0.verb) }) {
      calls[queue] = min(call, calls[queue] ?? Self.never)
    }
    var ends = all(.itemEnd, item)
    for begin in all(.itemBegin, item) {
      let thread = event(begin).thread
      let index = ends.firstIndex { event($0).thread == thread && $0 > begin }
      let end = index.map { ends.remove(at: $0) } ?? Self.never
      let queue = event(begin).value - 1
      // Performed directly, or on a queue that cannot be told.
      guard queue >= 0, !isPerforming(item, begin), let call = calls[queue] else { continue }
      runs.append(
        Run(
          name: "repeated item \(item)", queue: queue, isBarrier: program.items[item], call: call,
          submitted: begin,
          begin: begin, end: end, earliest: call))
    }
  }

  /// Whether the thread of the event at `position` is in a `perform` of the item.
  private func isPerforming(_ item: Int, _ position: Int) -> Bool {
    operations.contains {
      guard case .perform(item) = $0.verb, case let call = first(.call, $0.number), call < position else {
        return false
      }
      return event(call).thread == event(position).thread && position < first(.back, $0.number)
    }
  }

  /// Each item runs once (S1, S5), a synchronous one on its caller, before the call returns (S6).
  private mutating func checkRuns() {
    for operation in operations {
      let number = operation.number
      let (call, begin, end) = (first(.call, number), first(.begin, number), first(.end, number))
      if begin != Self.never, begin < call { violate("operation \(number) began before its call") }
      if all(.begin, number).count > 1 { violate("operation \(number) ran more than once") }
      if all(.noteBegin, number).count > 1 { violate("the notification of \(number) ran more than once") }
      let back = first(.back, number)
      if back == Self.never && call == Self.never { continue }
      switch operation.verb {
      case .sync, .asyncAndWait:
        if back < end { violate("operation \(number) returned before the end of its item") }
        if case .sync = operation.verb, begin != Self.never, event(begin).thread != event(call).thread {
          violate("the item of sync \(number) ran on another thread")
        }
      case .after(_, let delay):
        if begin != Self.never, event(begin).time - event(call).time < delay * 1000 {
          violate("operation \(number) ran before its deadline")  // S81
        }
      case .loop(let count):  // S76
        guard back != Self.never else { break }
        let indices = all(.indexBegin, number).map { event($0).value }.sorted()
        if indices != Array(0..<count) {
          violate("loop \(number) ran the indices \(indices) of 0..<\(count)")
        }
        if all(.indexEnd, number).contains(where: { $0 > back }) {
          violate("loop \(number) returned too early")
        }
      default: break
      }
      if let run = runOf[number], begin != Self.never {  // S136
        let queue = runs[run].queue
        let expected = program.queues[queue].kind == .global ? 0 : queue + 1
        if event(begin).value != expected {
          violate(
            "operation \(number) saw the specific value of queue \(event(begin).value - 1), not \(queue)")
        }
      }
    }
  }

  /// Serial queues and what ends in them run one item at a time (S1, S3, S20, S96), and barriers alone (S15,
  /// S17).
  private mutating func checkExclusion() {
    var serial = [UInt64](repeating: 0, count: program.queues.count)
    var concurrent = serial
    for queue in program.queues.indices {
      for link in program.chain(queue) {
        switch program.queues[link].kind {
        case .serial, .workloop: serial[queue] |= 1 << UInt64(link)
        case .concurrent: concurrent[queue] |= 1 << UInt64(link)
        case .global: break
        }
      }
    }
    func alone(_ run: Run, _ other: Run) -> Bool {
      run.isBarrier && program.queues[run.queue].kind == .concurrent
        && concurrent[other.queue] >> run.queue & 1 == 1
    }
    let sorted = runs.filter { $0.begin != Self.never }.sorted { $0.begin < $1.begin }
    for (index, run) in sorted.enumerated() {
      for other in sorted[(index + 1)...] {
        if other.begin > run.end { break }
        if serial[run.queue] & serial[other.queue] != 0 || alone(run, other) || alone(other, run) {
          violate("\(run.name) and \(other.name) overlapped on queues \(run.queue) and \(other.queue)")
        }
      }
    }
  }

  /// Serial queues and barriers keep the order of submission (S1, S15).
  private mutating func checkOrder() {
    let byQueue = Dictionary(grouping: runs.indices) { runs[$0].queue }
    for (queue, members) in byQueue {
      let kind = program.queues[queue].kind
      guard kind == .serial || kind == .concurrent else { continue }
      for later in members {
        for earlier in members where runs[earlier].submitted < runs[later].call {
          guard kind == .serial || runs[earlier].isBarrier || runs[later].isBarrier else { continue }
          // A cancelled item may never run.
          guard runs[earlier].begin != Self.never else { continue }
          if runs[later].begin < runs[earlier].end {
            violate("\(runs[later].name) overtook \(runs[earlier].name) on queue \(queue)")
          }
          runs[later].earliest = max(runs[later].earliest, min(runs[earlier].end, runs[later].begin))
        }
      }
    }
  }

  /// Nothing starts on a queue that is inactive or suspended, or that targets one (S27, S28, S31, S32, S35). An item
  /// may have been started before the suspension and note its begin later, so only one that cannot have been is wrong.
  private mutating func checkSuspension() {
    for (queue, value) in program.queues.enumerated() where value.isInactive {
      let active = first(.activated, queue)
      for run in runs where run.begin < active && program.chain(run.queue).contains(queue) {
        violate("\(run.name) ran although queue \(queue) was inactive")
      }
    }
    for operation in operations {
      let (begin, end) = (first(.begin, operation.number), first(.end, operation.number))
      guard begin != Self.never else { continue }
      for run in runs where run.earliest > begin && run.begin < end {
        switch operation.verb {
        case .suspended(let queue) where program.chain(run.queue).contains(queue):
          if isHeld(run, by: queue, since: begin) {
            violate("\(run.name) ran although \(operation.number) had suspended queue \(queue)")
          }
        case .suspendedSource(let source) where run.name == "a handler of source \(source)":
          violate("\(run.name) ran although \(operation.number) had suspended it")
        default: break
        }
      }
    }
  }

  /// Whether a suspended queue holds a run surely: one of its own, or one of a queue below that nothing has used before.
  /// Otherwise the queues below may have been at work, and may go on for a while.
  private func isHeld(_ run: Run, by queue: Int, since suspension: Int) -> Bool {
    let below = program.chain(run.queue).prefix { $0 != queue }
    return !runs.contains { $0.call < suspension && !program.reach($0.queue).isDisjoint(with: below) }
  }

  // MARK: - Work items

  /// Cancelled items do not run (S59), waits and notifications come after the run (S55, S58).
  private mutating func checkItems() {
    for operation in operations {
      guard case .item = operation.verb, let index = runOf[operation.number] else { continue }
      let (number, run) = (operation.number, runs[index])
      let cancelled = first(.cancelled, number)
      if run.begin != Self.never, run.earliest > cancelled {
        violate("item \(number) ran although it was cancelled")
      }
      if all(.cancelled, number).contains(where: { event($0).value == 0 }) {
        violate("item \(number) did not know of its cancellation")
      }
      let completed = run.begin == Self.never && cancelled != Self.never ? run.call : run.end
      if first(.waited, number) < completed { violate("the wait for item \(number) returned before its end") }
      if first(.noteBegin, number) < completed { violate("item \(number) notified before its end") }
    }
    for item in program.items.indices {
      let cancelled = first(.itemCancelled, item)
      let uses = operations.filter {
        switch $0.verb {
        case .submit(item, _), .perform(item): first(.call, $0.number) < cancelled
        default: false
        }
      }
      let count = all(.itemBegin, item).count
      if count > uses.count {
        violate("repeated item \(item) ran \(count) times, was used \(uses.count) times")
      }
    }
  }

  // MARK: - Groups and semaphores

  /// The group of an operation's item, and when the group was surely entered, and not yet left.
  private func membership(_ operation: Operation) -> (group: Int, entered: Int, leaves: Int)? {
    let number = operation.number
    var group: Int?
    switch operation.verb {
    case .async(_, _, _, let its): group = its
    case .enter(let its, _): group = its
    case .item(_, let use): group = use.group
    default: break
    }
    guard let group, let index = runOf[number] else { return nil }
    let run = runs[index]
    // A cancelled item leaves when it is reached.
    let leaves = run.begin == Self.never && first(.cancelled, number) != Self.never ? run.call : run.end
    return (group, min(first(.back, number), run.begin), leaves)
  }

  /// Waits and notifications come after the members that had entered before (S64-S66).
  private mutating func checkGroups() {
    let members = operations.compactMap { membership($0) }
    var notified: [(group: Int, queue: Int, number: Int)] = []
    for operation in operations {
      let (number, call) = (operation.number, first(.call, operation.number))
      guard call != Self.never else { continue }
      func early(_ group: Int, _ done: Int) -> Bool {
        members.contains { $0.group == group && $0.entered < call && $0.leaves > done }
      }
      switch operation.verb {
      case .notify(let group, let queue):
        guard let index = runOf[number], runs[index].begin != Self.never else { continue }
        if early(group, runs[index].begin) { violate("notification \(number) came before the last leave") }
        for other in notified where other.group == group && other.queue == queue {
          let before = runs[runOf[other.number]!]
          guard program.queues[queue].kind == .serial, first(.back, other.number) < call else { continue }
          if runs[index].begin < before.begin { violate("notification \(number) overtook \(other.number)") }
        }
        notified.append((group, queue, number))
      case .waitGroup(let group), .pollGroup(let group, _):
        let back = first(.back, number)
        guard back != Self.never else { continue }
        let isEmpty = event(back).value == 1
        if isEmpty, early(group, back) { violate("the wait \(number) ended before the last leave") }
        if !isEmpty { checkTimeout(operation, call, back) }
        if !isEmpty,
          !operations.contains(where: { isMember($0, of: group) && first(.call, $0.number) < back })
        {
          violate("the wait \(number) for an empty group timed out")
        }
      default: break
      }
    }
  }

  private func isMember(_ operation: Operation, of group: Int) -> Bool {
    switch operation.verb {
    case .async(_, _, _, let its): its == group
    case .enter(let its, _): its == group
    case .item(_, let use): use.group == group
    default: false
    }
  }

  /// A wait that timed out has lasted that long.
  private mutating func checkTimeout(_ operation: Operation, _ call: Int, _ back: Int) {
    switch operation.verb {
    case .pollGroup(_, let delay) where event(back).time - event(call).time < delay * 1000,
      .tryLocked(_, let delay) where event(back).time - event(call).time < delay * 1000:
      violate("the wait \(operation.number) timed out too early")
    default: break
    }
  }

  /// A semaphore of 1 excludes; one of 0 lets as many pass as were signalled (S71, S72).
  private mutating func checkSemaphores() {
    var scopes: [(lock: Int, begin: Int, end: Int, number: Int)] = []
    for operation in operations {
      let number = operation.number
      switch operation.verb {
      case .tryLocked(let lock, _), .locked(let lock):
        let (begin, back) = (first(.begin, number), first(.back, number))
        if begin != Self.never { scopes.append((lock, begin, first(.end, number), number)) }
        if begin == Self.never, back != Self.never { checkTimeout(operation, first(.call, number), back) }
      default: break
      }
    }
    scopes.sort { $0.begin < $1.begin }
    for lock in 0..<program.locks {
      let own = scopes.filter { $0.lock == lock }
      for (scope, next) in zip(own, own.dropFirst()) where next.begin < scope.end {
        violate("\(scope.number) and \(next.number) both hold lock \(lock)")
      }
    }
    for gate in program.gates.indices {
      let numbers = operations.compactMap { if case .handOver(gate, _) = $0.verb { $0.number } else { nil } }
      let (signals, waits) = (numbers.map { first(.end, $0) }, numbers.map { first(.back, $0) })
      for wait in waits where wait != Self.never {
        if waits.count(where: { $0 <= wait }) > signals.count(where: { $0 < wait }) {
          violate("semaphore \(gate) let a thread pass without a signal")
        }
      }
    }
  }

  // MARK: - Sources

  private func merges(_ source: Int) -> [(call: Int, back: Int, value: UInt)] {
    operations.compactMap {
      guard case .merge(source, let value) = $0.verb, first(.call, $0.number) != Self.never else {
        return nil
      }
      return (first(.call, $0.number), first(.back, $0.number), value)
    }
  }

  /// What is merged comes once, combined (S106, S107); nothing comes after the cancel handler (S99).
  private mutating func checkSource(_ source: Int) {
    let merges = merges(source)
    let handlers = all(.handlerBegin, source).map { (begin: $0, data: UInt(event($0).value)) }
    let kind = program.sources[source].kind
    var sum: UInt = 0
    for handler in handlers {
      let before = merges.filter { $0.call < handler.begin }
      sum += handler.data
      let isAllowed: Bool
      switch kind {
      case .add: isAllowed = sum <= before.reduce(0) { $0 + $1.value }
      case .or:
        // Each bit comes at most as often as it was merged.
        isAllowed = (0..<64).allSatisfy { (bit: UInt) -> Bool in
          guard handler.data >> bit & 1 == 1 else { return true }
          let calls = handlers.count { $0.begin <= handler.begin && $0.data >> bit & 1 == 1 }
          return calls <= before.count { $0.value >> bit & 1 == 1 }
        }
      case .replace:
        let isKnown = before.contains { $0.value == handler.data }
        isAllowed = isKnown && handlers.count { $0.data == handler.data } == 1
      }
      if handler.data == 0 || !isAllowed {
        violate("source \(source) delivered \(handler.data), which is not merged")
      }
    }
    if kind == .replace {
      for (handler, next) in zip(handlers, handlers.dropFirst()) {
        guard let old = merges.first(where: { $0.value == handler.data }),
          let new = merges.first(where: { $0.value == next.data })
        else { continue }
        if new.back < old.call { violate("source \(source) delivered \(next.data) after \(handler.data)") }
      }
    }
    let begins = all(.handlerBegin, source)
    for (end, next) in zip(all(.handlerEnd, source), begins.dropFirst()) where next < end {
      violate("two handlers of source \(source) overlapped")  // S96
    }
    let ends = all(.cancelHandler, source)
    if ends.count > 1 { violate("source \(source) called its cancel handler \(ends.count) times") }
    let cancelled = cancellation(source)
    if let last = begins.last, let end = ends.first, end < last {
      violate("source \(source) called a handler after its cancel handler")
    }
    // One call may have been started before the cancellation.
    if begins.count(where: { $0 > cancelled }) > 1 {
      violate("source \(source) went on after its cancellation")
    }
    if let end = ends.first, end < min(cancelled, first(.retired, source)),
      !operations.contains(where: { isCancel($0, of: source) && first(.call, $0.number) < end })
    {
      violate("source \(source) called its cancel handler before its cancellation")
    }
  }

  private func isCancel(_ operation: Operation, of source: Int) -> Bool {
    if case .cancelSource(source) = operation.verb { true } else { false }
  }

  /// When `cancel` had surely been called by the program.
  private func cancellation(_ source: Int) -> Int {
    operations.lazy.filter { isCancel($0, of: source) }.map { first(.back, $0.number) }.min() ?? Self.never
  }

  /// Whether what was merged into a source has not all been delivered (S106).
  private func owes(_ source: Int) -> Bool {
    if operations.contains(where: { isCancel($0, of: source) && first(.call, $0.number) != Self.never }) {
      return false
    }
    let merges = merges(source)
    let handlers = all(.handlerBegin, source).map { (begin: $0, data: UInt(event($0).value)) }
    switch program.sources[source].kind {
    case .add: return handlers.reduce(0) { $0 + $1.data } < merges.reduce(0) { $0 + $1.value }
    case .or:
      return merges.contains { merge in
        !handlers.contains { $0.begin > merge.call && $0.data & merge.value != 0 }
      }
    case .replace:
      // The last value delivered is not one that was surely replaced.
      guard let last = handlers.last, let own = merges.first(where: { $0.value == last.data }) else {
        return !merges.isEmpty
      }
      return merges.contains { own.back < $0.call }
    }
  }

  // MARK: - Results, and what is owed

  /// Data programs and programs of one thread are functions: exactly one result is right (S115-S121).
  private mutating func checkResults() {
    for operation in operations {
      guard case .data = operation.verb, first(.back, operation.number) != Self.never else { continue }
      let data = DataProgram(operation)
      for (step, (seen, right)) in zip(log.results[operation.number] ?? [], data.expected).enumerated() {
        if seen != right { violate("step \(data.steps[step].number) of data shows \(seen), not \(right)") }
      }
      if all(.freed, operation.number).count > data.ownedBuffers {
        violate("data \(operation.number) freed too much")
      }
    }
    if program.isSequential {
      let begins = log.events.compactMap { $0.what == .begin ? $0.number : nil }
      let called = operations.compactMap {
        switch $0.verb {
        case .sync, .asyncAndWait, .locked: first(.call, $0.number) != Self.never ? $0.number : nil
        default: nil
        }
      }
      if begins != called { violate("a program of one thread ran \(begins), not \(called)") }
    }
  }

  /// What must still happen. Empty when a program has ended.
  static func owed(_ program: Program, _ log: Log) -> [String] {
    let contract = Contract(program, log)
    func lacks(_ what: Event.What, _ number: Int) -> Bool { contract.first(what, number) == never }
    var owed: [String] = []
    for operation in contract.operations where !lacks(.call, operation.number) {
      let number = operation.number
      if lacks(.back, number) { owed.append("the return of operation \(number)") }
      switch operation.verb {
      case .async, .sync, .asyncAndWait, .after, .enter, .notify, .handOver:
        if lacks(.end, number) { owed.append("the item of operation \(number)") }
      case .item(_, let use):
        let isStarted = !lacks(.begin, number) || lacks(.cancelled, number)
        if lacks(.end, number), isStarted { owed.append("item \(number)") }
        if use.notifies != nil, lacks(.noteEnd, number) { owed.append("the notification of item \(number)") }
      case .data:
        let data = DataProgram(operation)
        let freed = contract.all(.freed, number).count
        if freed < data.ownedBuffers {
          owed.append("\(data.ownedBuffers - freed) deallocators of data \(number)")
        }
      default: break
      }
    }
    for item in program.items.indices where lacks(.itemCancelled, item) {
      let uses = contract.operations.count {
        switch $0.verb {
        case .submit(item, _), .perform(item): !lacks(.call, $0.number)
        default: false
        }
      }
      let ended = contract.all(.itemEnd, item).count
      if ended < uses { owed.append("\(uses - ended) runs of repeated item \(item)") }
    }
    for source in program.sources.indices {
      if contract.owes(source) { owed.append("data of source \(source)") }
      let isCancelled =
        !lacks(.retired, source)
        || contract.operations.contains { contract.isCancel($0, of: source) && !lacks(.call, $0.number) }
      if isCancelled, lacks(.cancelHandler, source) { owed.append("the cancel handler of source \(source)") }
    }
    return owed
  }
}
