import Glibc

/// Follows names: opens what they lead to, has it read as far as there is room for the lines, and passes
/// the lines on.
///
/// Everything happens on one serial queue: the handlers of all sources and channels run there, and so the
/// state needs no lock. Nothing on it waits, except for the file system.
// SAFETY: the variables are OWNED BY `queue`.
package final class Follower: @unchecked Sendable {
  package struct Outcome: Sendable, Equatable {
    /// What to exit with.
    package let status: Int32
    /// The errno with which the output failed, or 0.
    package let outputFailure: Int32
  }

  let options: Options
  package let queue = DispatchQueue(label: "tail-many")
  private let report: @Sendable (Bytes) -> Void
  private let completion: @Sendable (Outcome) -> Void

  /// In the order in which they were met.
  var names: [FollowedName] = []
  var places: [Bytes: FollowedName] = [:]
  /// The directories that tell of names, by path.
  var directories: [Bytes: DirectoryWatch] = [:]
  /// What is open, also files that have lost their name.
  var files: [FileIdentity: OpenFile] = [:]
  var isStarting = true

  private var pump: Pump
  private var multiplexer: Multiplexer
  // Set once, by `start`.
  private var output: OutputChannel!
  var recheck: (any DispatchSourceTimer)?
  var idle: (any DispatchSourceTimer)?

  private var lineCount = 0
  private var byteCount = 0
  private var lastArrival = DispatchTime.now()
  private var stopStatus: Int32?
  private var isFlushed = false

  /// - Parameters:
  ///   - report: called with a line of text when something becomes of a file.
  ///   - completion: called once, on `queue`, when all is over and written.
  package init(
    _ options: Options, report: @escaping @Sendable (Bytes) -> Void,
    completion: @escaping @Sendable (Outcome) -> Void
  ) {
    self.options = options
    self.report = report
    self.completion = completion
    pump = Pump(limit: options.buffer)
    multiplexer = Multiplexer(options.style ?? .plain)
  }

  /// Begins; everything follows from events.
  package func start(output descriptor: Int32) {
    queue.async { [self] in
      output = OutputChannel(
        descriptor: descriptor, queue: queue, drained: { [weak self] in self?.turn() },
        closed: { [weak self] in self?.outputClosed($0) })
      for path in options.paths where places[path] == nil { add(path, isArgument: true) }
      if options.style == nil && (names.count > 1 || names.contains { $0.isDirectory }) {
        multiplexer = Multiplexer(.header)
      }
      isStarting = false
      startTimers()
      turn()
    }
  }

  /// Ends in good order: what has been read is written, unfinished lines too.
  package func stop(status: Int32) {
    queue.async { [self] in stopNow(status) }
  }

  /// A line of numbers.
  package func statusLine() -> Bytes {
    dispatchPrecondition(condition: .onQueue(queue))
    let retired = files.values.count { $0.retiredSince != nil }
    let missing = names.count { $0.isArgument && $0.needsRecheck }
    return Bytes(
      ("tail-many: \(files.count - retired) files followed, \(retired) without a name, \(missing) waited for; "
        + "\(lineCount) lines, \(byteCount) bytes read, \(output?.pending ?? 0) not yet written\n").utf8)
  }

  func say(_ path: Bytes, _ text: String) {
    guard !options.quiet else { return }
    report(Bytes("tail-many: ".utf8) + path + Bytes(": \(text)\n".utf8))
  }
}

// MARK: - Reading

extension Follower {
  /// Something happened to an open file.
  func look(at file: OpenFile) {
    pump.enqueue(file)
  }

  func noteCatchingUp() { pump.catchingUp += 1 }

  /// Reads as much as there is room for.
  func turn() {
    while stopStatus == nil, let file = pump.next(pendingOutput: output.pending) { readNext(file) }
    if stopStatus != nil { flush() } else { endIfGone() }
  }

  private func readNext(_ file: OpenFile) {
    switch file.work {
    case .scan(let scan):
      switch scan.next {
      case .found(let start):
        file.work = .read
        file.readTo = start
        pump.enqueue(file)
      case .read(let offset, let length):
        read(file, at: offset, length) { data in
          var scan = scan
          scan.show(data)
          file.work = .scan(scan)
          return true
        }
      }
    case .read:
      switch file.size.map({ Growth.of(size: $0, read: file.readTo) }) ?? .none {
      case .none: reachedEnd(of: file)
      case .truncated:
        pass(file.lines.finish(), from: file)
        say(file.name, "truncated, beginning again")
        file.readTo = 0
        pump.enqueue(file)
      case .some(let count):
        read(file, at: file.readTo, Int(min(count, Int64(Pump.chunk)))) { [self] data in
          arrived(data, from: file)
          return data.count > 0
        }
      }
    }
  }

  /// - Parameter shown: takes what was read, and says whether to go on.
  private func read(
    _ file: OpenFile, at offset: Int64, _ length: Int, shown: @escaping @Sendable (DispatchData) -> Bool
  ) {
    pump.begin(file)
    file.read(at: offset, length) { [self] data, error in
      pump.end(file)
      if error != 0 { say(file.name, "cannot be read: \(describe(errno: error))") }
      let goesOn = shown(data)
      // Even at what looks like the end: an event may have come during the read.
      if error == 0 && goesOn { pump.enqueue(file) } else { reachedEnd(of: file) }
      turn()
    }
  }

  private func arrived(_ data: DispatchData, from file: OpenFile) {
    guard data.count > 0 else { return }
    file.readTo += Int64(data.count)
    byteCount += data.count
    lastArrival = .now()
    if file.retiredSince != nil { file.retiredSince = lastArrival }
    pass(file.lines.append(data), from: file)
  }

  private func pass(_ lines: DispatchData, from file: OpenFile) {
    lineCount += lines.newlineCount
    output.write(multiplexer.format(lines, from: file.name))
  }

  private func reachedEnd(of file: OpenFile) {
    if file.isCatchingUp {
      file.isCatchingUp = false
      pump.catchingUp -= 1
    }
    // The lines of the old file come before those of the new one.
    if let successor = file.successor {
      file.successor = nil
      successor.isHeld = false
      pump.enqueue(successor)
    }
    if let since = file.retiredSince, since + .milliseconds(options.linger) <= .now() { end(file) }
  }

  /// Nothing more will be read of the file.
  private func end(_ file: OpenFile) {
    pass(file.lines.finish(), from: file)
    files[file.identity] = nil
    file.end()
  }
}

// MARK: - Ending

extension Follower {
  var isStopping: Bool { stopStatus != nil }

  private func endIfGone() {
    guard options.exitsWhenGone, !isStarting, pump.isIdle, output.pending == 0 else { return }
    let isGone = names.allSatisfy { name in
      if case .missing = name.state { true } else { !name.isArgument }
    }
    if isGone { stopNow(0) }
  }

  /// Ends if nothing has come for long enough.
  /// - Returns: in how long it should be asked again.
  func endIfIdle(afterMilliseconds milliseconds: Int) -> DispatchTime {
    let limit = DispatchTimeInterval.milliseconds(milliseconds)
    let now = DispatchTime.now()
    // While there is work, not more often than ten times a second.
    guard pump.isIdle, output.pending == 0 else { return now + .milliseconds(max(100, milliseconds)) }
    if lastArrival + limit > now { return lastArrival + limit }
    stopNow(0)
    return .distantFuture
  }

  private func stopNow(_ status: Int32) {
    guard stopStatus == nil else { return }
    stopStatus = status
    recheck?.cancel()
    idle?.cancel()
    directories = [:]
    flush()
  }

  /// What was read is passed on; what was not stays where it is.
  private func flush() {
    guard !isFlushed, !pump.hasReadsUnderWay else { return }
    isFlushed = true
    // Files that have lost their name come first, as their lines are older.
    let retired = files.values.filter { $0.retiredSince != nil }
    for file in retired { end(file) }
    for name in names {
      if let file = name.file { end(file) }
      name.file = nil
    }
    output.close()
  }

  private func outputClosed(_ failure: Int32) {
    if failure != 0 { stopNow(1) }
    completion(Outcome(status: failure != 0 ? 1 : stopStatus ?? 0, outputFailure: failure))
  }
}
