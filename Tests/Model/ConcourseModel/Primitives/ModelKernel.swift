internal import CConcourse
internal import Glibc

/// The objects behind descriptors, in the model: eventfds, timers, pipes and event queues.
///
/// A call is one step on the word of its object, sequentially consistent, since the kernel takes the object's lock. What
/// becomes ready wakes one of the threads that wait for events, whichever the search chooses.
final class ModelKernel {
  // SAFETY: read and written on the exploring thread only; explorations run one at a time.
  private nonisolated(unsafe) static var files: [Int32: File] = [:]

  // SAFETY: as above.
  private nonisolated(unsafe) static var last: Int32 = 100

  static func beginAfresh() { (files, last) = ([:], 100) }

  enum Kind {
    case event
    case timer(isWall: Bool)
    case pipe, poller
  }

  final class File {
    let kind: Kind
    fileprivate let word = Atomic<UInt32>(0)
    /// The number of an eventfd, the bytes in a pipe, 1 for a timer that has fired.
    fileprivate var count = 0
    /// Whether the other end of a pipe is closed.
    fileprivate var isHungUp = false
    /// Whether there is room to write; never unless `makeRoom` is called.
    fileprivate var hasRoom = false
    /// When a timer fires, on its clock.
    fileprivate var alarm: UInt64?
    fileprivate var watch: Watch?
    /// What is ready and not collected, of a poller.
    fileprivate var ready: [File] = []

    init(_ kind: Kind) { self.kind = kind }

    fileprivate var readiness: UInt32 {
      (count > 0 || isHungUp ? UInt32(CONCOURSE_READABLE) : 0) | (isHungUp ? UInt32(CONCOURSE_HANG_UP) : 0)
        | (hasRoom ? UInt32(CONCOURSE_WRITABLE) : 0)
    }
  }

  fileprivate struct Watch {
    let poller: File
    let token: UInt64
    let interest: UInt32
    var isArmed = true
  }

  static func make(_ kind: Kind) -> Int32 {
    if let scheduler = Scheduler.current, scheduler.isExecuting { scheduler.endOvertaking() }
    Scheduler.current?.partialOrder?.touch(0, .numbering, isWrite: true)
    last += 1
    files[last] = File(kind)
    return last
  }

  /// Makes a step on a file. An unknown descriptor has no file.
  private static func beginCall(_ descriptor: Int32, _ line: UInt = #line) -> File? {
    Scheduler.current?.partialOrder?.touch(0, .numbering, isWrite: false)
    guard let file = files[descriptor] else { return nil }
    // ORDERING: sequentially consistent; a system call takes the object's lock.
    file.word.wrappingAdd(1, ordering: .sequentiallyConsistent, line: line)
    return file
  }

  /// A file has become ready, or has news.
  private static func notify(_ file: File) {
    Scheduler.current?.wake(on: file.word.address, count: .max)
    guard let watch = file.watch, watch.isArmed else { return }
    guard file.readiness & (watch.interest | UInt32(CONCOURSE_HANG_UP)) != 0 else { return }
    let poller = watch.poller
    poller.word.touch()
    if !poller.ready.contains(where: { $0 === file }) { poller.ready.append(file) }
    Scheduler.current?.wake(on: poller.word.address, count: 1)
  }

  // MARK: Calls

  /// Adds to an eventfd, or writes to a pipe.
  static func write(_ descriptor: Int32, _ count: Int = 1) {
    guard let file = beginCall(descriptor) else { return }
    file.count += count
    notify(file)
  }

  /// Takes everything from an eventfd or a pipe.
  @discardableResult
  static func readAll(_ descriptor: Int32) -> Int {
    guard let file = beginCall(descriptor) else { return 0 }
    defer { file.count = 0 }
    return file.count
  }

  /// Closes the other end of a pipe.
  static func hangUp(_ descriptor: Int32) {
    guard let file = beginCall(descriptor) else { return }
    file.isHungUp = true
    notify(file)
  }

  /// Lets the owner of a descriptor write to it.
  static func makeRoom(_ descriptor: Int32) {
    guard let file = beginCall(descriptor) else { return }
    file.hasRoom = true
    notify(file)
  }

  /// Whether an event queue has an entry for the descriptor.
  static func isWatched(_ descriptor: Int32) -> Bool { beginCall(descriptor)?.watch != nil }

  /// Sleeps until an eventfd or a pipe has something to read, as `poll` does.
  static func waitUntilReadable(_ descriptor: Int32) {
    while let file = beginCall(descriptor), file.readiness == 0 {
      _ = Scheduler.current!.sleep(on: file.word.address, until: nil)
    }
  }

  /// Closes a descriptor; the kernel forgets what watches it.
  static func close(_ descriptor: Int32) {
    guard let file = beginCall(descriptor) else { return }
    forget(file)
    Scheduler.current?.partialOrder?.touch(0, .numbering, isWrite: true)
    files[descriptor] = nil
  }

  private static func forget(_ file: File) {
    guard let poller = file.watch?.poller else { return }
    poller.word.touch()
    poller.ready.removeAll { $0 === file }
    file.watch = nil
  }

  fileprivate static func control(
    _ poller: Int32, _ change: Int32, _ descriptor: Int32, _ interest: UInt32, token: UInt64
  ) -> Int {
    guard let file = beginCall(descriptor) else { return -Int(EBADF) }
    switch change {
    case 1 where file.watch != nil: return -Int(EEXIST)
    case 2 where file.watch == nil, 3 where file.watch == nil: return -Int(ENOENT)
    case 2: forget(file)
    default:
      file.watch = Watch(poller: files[poller]!, token: token, interest: interest)
      notify(file)
    }
    return 0
  }

  fileprivate static func readiness(of descriptor: Int32, _ interest: UInt32) -> Int {
    beginCall(descriptor).map { Int($0.readiness & (interest | UInt32(CONCOURSE_HANG_UP))) } ?? -Int(EBADF)
  }

  fileprivate static func readableBytes(of descriptor: Int32) -> Int {
    beginCall(descriptor).map(\.count) ?? -Int(EBADF)
  }

  fileprivate static func wait(
    _ descriptor: Int32, _ events: UnsafeMutablePointer<concourse_event>, _ capacity: Int32,
    _ milliseconds: Int32
  ) -> Int32 {
    let scheduler = Scheduler.current!
    let deadline = milliseconds < 0 ? nil : scheduler.elapsed + UInt64(milliseconds) * 1_000_000
    var timedOut = false
    while true {
      let poller = beginCall(descriptor)!
      var count = 0
      // Both modes that the engine uses, edge-triggered and one-shot, report an event once.
      let ready = poller.ready
      var taken = 0
      for file in ready where count < capacity {
        taken += 1
        file.word.touch()
        let found = file.readiness & (file.watch!.interest | UInt32(CONCOURSE_HANG_UP))
        guard found != 0 else { continue }
        events[count] = concourse_event(ready: found, token: file.watch!.token)
        count += 1
        if file.watch!.interest & UInt32(bitPattern: Int32(CONCOURSE_ONE_SHOT)) != 0 {
          file.watch!.isArmed = false
        }
      }
      // What does not fit stays for the next call.
      poller.ready.removeFirst(taken)
      // After the time-out, too, the kernel looks at what is ready.
      if count > 0 || timedOut { return Int32(count) }
      timedOut = scheduler.sleep(on: poller.word.address, until: deadline) == .timedOut
    }
  }

  // MARK: Timers

  fileprivate static func set(timer: Int32, isWall: Bool, to time: UInt64) -> Int {
    guard let file = beginCall(timer) else { return -Int(EBADF) }
    file.count = 0
    file.alarm = time == 0 ? nil : time
    ring()
    return 0
  }

  private static func now(_ kind: Kind) -> UInt64 {
    if case .timer(true) = kind { return Clock.wallNow }
    return Clock.uptimeNow
  }

  /// When the next timer fires, in virtual nanoseconds since the start of the execution.
  static var nextAlarm: UInt64? {
    let scheduler = Scheduler.current!
    return files.values.compactMap { file in
      file.alarm.map { scheduler.elapsed + ($0 > now(file.kind) ? $0 - now(file.kind) : 0) }
    }.min()
  }

  /// Fires the timers that are due; those of the wall clock also when it has been set.
  static func ring(wallWasSet: Bool = false) {
    for number in files.keys.sorted() {
      let file = files[number]!
      guard let alarm = file.alarm else { continue }
      var isCancelled = false
      if case .timer(true) = file.kind { isCancelled = wallWasSet }
      guard isCancelled || alarm <= now(file.kind) else { continue }
      file.alarm = nil
      file.count = 1
      notify(file)
    }
  }
}

extension Atomic where Value == UInt32 {
  /// What a system call does to a further object, in the same step.
  fileprivate func touch() {
    _ = access(#fileID, #line, #function, isQuiet: true)?
      .update(Ordering(AtomicUpdateOrdering.sequentiallyConsistent)) { $0 }
  }
}

// MARK: - What the engine calls

/// The engine's system calls, in the model.
enum System {
  static func createPoller() -> Int {
    ModelFaults.refusesDescriptors ? -Int(EMFILE) : Int(ModelKernel.make(.poller))
  }
  static func createTimer(isWall: Bool) -> Int { Int(ModelKernel.make(.timer(isWall: isWall))) }
  static func createEvent() -> Int { Int(ModelKernel.make(.event)) }

  static func control(
    _ poller: Int32, _ change: Int32, _ descriptor: Int32, _ interest: UInt32, token: UInt64
  ) -> Int {
    if ModelFaults.plants(.noWrite, #fileID, #function) { return 0 }
    return ModelKernel.control(poller, change, descriptor, interest, token: token)
  }

  static func set(timer: Int32, isWall: Bool, to nanoseconds: UInt64) -> Int {
    if ModelFaults.plants(.noWrite, #fileID, #function) { return 0 }
    if ModelFaults.refusesTimers { return -Int(ENOMEM) }
    return ModelKernel.set(timer: timer, isWall: isWall, to: nanoseconds)
  }

  static func readiness(of descriptor: Int32, _ interest: UInt32) -> Int {
    ModelKernel.readiness(of: descriptor, interest)
  }

  static func readableBytes(of descriptor: Int32) -> Int { ModelKernel.readableBytes(of: descriptor) }

  /// No descriptor is a file's or a socket's.
  static func bytesLeft(in descriptor: Int32) -> Int { -Int(ESPIPE) }
  static func isGenerated(_ descriptor: Int32) -> Bool { false }
  static func isInProc(_ descriptor: Int32) -> Bool { false }
  static func position(of descriptor: Int32) -> Int { -Int(ESPIPE) }
  static func read(_: Int32, _: UnsafeMutableRawPointer, _: Int, _: Int) -> Int { -Int(ESPIPE) }
  static func socketType(of descriptor: Int32) -> Int { -Int(ENOTSOCK) }
  static func isAtMark(_ socket: Int32) -> Bool { false }

  /// Every descriptor is a pipe's.
  static func status(of descriptor: Int32, _ status: inout stat) -> Int {
    status.st_mode = S_IFIFO
    return 0
  }
}

/// No file of the model grows.
final class FileGrowth {
  init(of descriptor: Int32, for backend: ReadBackend, hub: InotifyHub, pause: UInt64) {}
  func wait() {}
  func end() {}
}

/// The hub of a model without files.
struct InotifyHub {
  static var shared: InotifyHub { InotifyHub() }
}

/// The model refuses no system calls.
enum SystemScript {
  static var isActive: Bool { false }
  static func run(_ call: SystemCall, _ body: () -> Int) -> Int { body() }
}

enum SystemCall { case epollWait }

// They hide the C functions of the same names.

// swift-format-ignore: AlwaysUseLowerCamelCase
func concourse_eventfd() -> Int32 { ModelKernel.make(.event) }

// swift-format-ignore: AlwaysUseLowerCamelCase
func concourse_eventfd_signal(_ descriptor: Int32) {
  if !ModelFaults.plants(.noWake, #fileID, #function) { ModelKernel.write(descriptor) }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
func concourse_eventfd_clear(_ descriptor: Int32) { ModelKernel.readAll(descriptor) }

// swift-format-ignore: AlwaysUseLowerCamelCase
func concourse_epoll_wait(
  _ epoll: Int32, _ events: UnsafeMutablePointer<concourse_event>, _ capacity: Int32, _ timeout: Int32
) -> Int32 { ModelKernel.wait(epoll, events, capacity, timeout) }
