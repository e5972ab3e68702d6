import ExampleSupport
import Glibc

/// Follows names: opens the files that they lead to, and writes the lines that are appended.
///
/// The handlers of all sources and channels run on one serial queue, so the state needs no lock. One read or write is
/// in flight at a time: a file is read when everything read before is written, so a slow reader of the output costs
/// no memory.
// SAFETY: the variables are OWNED BY `queue`.
final class Follower: @unchecked Sendable {
  let queue = DispatchQueue(label: "tail-many")

  private let options: Options
  private let report: @Sendable (Bytes) -> Void
  private let ended: @Sendable (_ status: Int32, _ outputFailure: Int32) -> Void
  private let names: [FollowedName]
  /// A source for each directory with a followed name in it. A name that appears is an event there.
  private var directories: [Bytes: DirectoryWatch] = [:]
  /// Runs once a second while a name leads to no file: its directory may be missing, or the file not readable yet,
  /// and no event tells when that changes.
  private let recheck: any DispatchSourceTimer
  /// The names whose files may have something to read, in order.
  private var ready: [FollowedName] = []
  private var isBusy = false
  private var isStarting = true
  private var stopStatus: Int32?
  private var output: DispatchIO!
  /// The name whose lines were written last.
  private var lastName: FollowedName?

  /// - Parameters:
  ///   - report: called with a message when a name begins or ends to lead to a file.
  ///   - ended: called on `queue` at the end, with the exit status and the errno of a failed write, or 0.
  init(
    _ options: Options, report: @escaping @Sendable (Bytes) -> Void,
    ended: @escaping @Sendable (Int32, Int32) -> Void
  ) {
    self.options = options
    self.report = report
    self.ended = ended
    names = options.paths.map { FollowedName($0) }
    recheck = DispatchSource.makeTimerSource(queue: queue)
  }

  func start(output descriptor: Int32) {
    queue.async { [self] in
      output = DispatchIO(type: .stream, fileDescriptor: descriptor, queue: queue) { _ in }
      recheck.setEventHandler { [weak self] in self?.checkMissing() }
      recheck.activate()
      for name in names {
        // First listen, then look: nothing that happens in between is missed.
        watch(name.path.parent)
        check(name)
      }
      isStarting = false
      turn()
    }
  }

  /// Ends in good order: what has been read is written, unfinished lines too. To be called on `queue`.
  ///
  /// - Returns: false if it was stopped before.
  func stop(status: Int32) -> Bool {
    guard stopStatus == nil else { return false }
    stopStatus = status
    turn()
    return true
  }

  // MARK: Names

  /// Finds out where the name leads now.
  private func check(_ name: FollowedName) {
    switch Target(of: name.path) {
    case .none(let error): setProblem(error, of: name)
    case .file(let identity):
      guard let file = name.file else { return open(name) }
      clearProblem(of: name)
      if file.identity != identity && !file.isReplaced {
        file.isReplaced = true
        say(name, "replaced, following the new file")
      }
      enqueue(name)
    }
  }

  private func open(_ name: FollowedName) {
    let file = OpenFile(name.path, queue: queue) { [weak self] file, event in
      guard let self, name.file === file else { return }
      enqueue(name)
      if !event.isDisjoint(with: [.delete, .link, .rename, .attrib, .revoke]) { check(name) }
      turn()
    }
    guard let file else { return setProblem(errno, of: name) }
    clearProblem(of: name)
    if isStarting { file.beginWithLastLines(options.lines) }
    name.file = file
    enqueue(name)
  }

  /// A file without a name stays open until its name leads to another one: its writer may go on for a while.
  private func setProblem(_ error: Int32, of name: FollowedName) {
    guard name.problem != error else { return }
    let isGone = error == ENOENT && name.file != nil
    say(name, (isGone ? "is gone" : describe(errno: error)) + ", waiting for it")
    name.problem = error
    armRecheck()
  }

  private func clearProblem(of name: FollowedName) {
    if name.problem != nil { say(name, "is there") }
    name.problem = nil
  }

  private func watch(_ path: Bytes) {
    guard directories[path] == nil else { return }
    directories[path] = DirectoryWatch(path, queue: queue) { [weak self] event in
      guard let self else { return }
      if !event.isDisjoint(with: [.delete, .rename, .revoke]) {
        // The path may lead to another directory now.
        directories[path] = nil
        watch(path)
      }
      for name in names where name.path.parent == path { check(name) }
      turn()
    }
  }

  private func armRecheck() { recheck.schedule(deadline: .now() + 1, leeway: .milliseconds(100)) }

  private func checkMissing() {
    for name in names where name.problem != nil {
      watch(name.path.parent)
      check(name)
    }
    if names.contains(where: { $0.problem != nil }) { armRecheck() }
    turn()
  }

  private func say(_ name: FollowedName, _ text: String) { report(name.path + Bytes(": \(text)".utf8)) }

  // MARK: Reading and writing

  private func enqueue(_ name: FollowedName) {
    if name.isReady { return }
    name.isReady = true
    ready.append(name)
  }

  /// Starts the next read, unless something is in flight.
  private func turn() {
    while !isBusy {
      if let stopStatus {
        guard let name = names.first(where: { $0.file?.lines.isEmpty == false }), let file = name.file else {
          return ended(stopStatus, 0)
        }
        write(file.lines.finish(), of: name)
      } else if !ready.isEmpty {
        let name = ready.removeFirst()
        name.isReady = false
        if let file = name.file { read(file, of: name) }
      } else {
        return
      }
    }
  }

  private func read(_ file: OpenFile, of name: FollowedName) {
    let size = file.size
    if size < file.offset {
      say(name, "truncated, beginning again")
      file.beginAgain()
      enqueue(name)
      write(file.lines.finish(), of: name)
    } else if size > file.offset {
      isBusy = true
      file.read(size - file.offset) { [self] lines, error in
        isBusy = false
        if error == 0 { enqueue(name) } else { say(name, "cannot be read: \(describe(errno: error))") }
        write(lines, of: name)
        turn()
      }
    } else if file.isReplaced {
      write(file.lines.finish(), of: name)
      file.close()
      name.file = nil
      check(name)
    }
  }

  private func write(_ lines: DispatchData, of name: FollowedName) {
    guard lines.count > 0 else { return }
    var text = DispatchData.empty
    if names.count > 1 && lastName !== name {
      let header = Bytes((lastName == nil ? "==> " : "\n==> ").utf8) + name.path + Bytes(" <==\n".utf8)
      text = header.withUnsafeBytes { DispatchData(bytes: $0) }
      lastName = name
    }
    text.append(lines)
    isBusy = true
    output.write(offset: 0, data: text, queue: queue) { [self] done, _, error in
      if error != 0 { return ended(1, error) }
      guard done else { return }
      isBusy = false
      turn()
    }
  }
}

/// A name that is followed, and the file that it leads to.
// SAFETY: the variables are OWNED BY the follower's queue.
final class FollowedName: @unchecked Sendable {
  let path: Bytes
  var file: OpenFile?
  /// Why the name leads to no file that can be read; nil if it does.
  var problem: Int32?
  /// Whether it is in the list of ready names.
  var isReady = false

  init(_ path: Bytes) { self.path = path }
}
