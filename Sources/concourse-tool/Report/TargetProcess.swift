import CTracing
import Glibc

/// A process that is examined: running, stopped, or a core dump.
struct TargetProcess {
  struct Failure: Error {
    let reason: String
  }

  /// A signal that the process brought upon itself; not one that another process sent to get a core dump.
  struct Crash {
    let signal: Int32
    let thread: UInt32
    /// Of what was accessed; nil for a signal that the process sent itself.
    var address: UInt64?

    private static let names: [Int32: String] = [
      SIGILL: "SIGILL", SIGTRAP: "SIGTRAP", SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE",
      SIGSEGV: "SIGSEGV", SIGSYS: "SIGSYS",
    ]

    /// - Parameter information: the kernel's about the signal, `siginfo_t`; nil if the dump has none.
    init?(signal: Int32, thread: UInt32, of process: Int32, _ information: [UInt8]?) {
      guard Self.names[signal] != nil else { return nil }
      (self.signal, self.thread) = (signal, thread)
      guard let information, information.number(at: 0) == signal,
        let code: Int32 = information.number(at: 8), let sender: Int32 = information.number(at: 16)
      else {
        // A debugger that writes a dump stops the process with SIGTRAP; SIGABRT may have come from anywhere.
        if signal == SIGTRAP || signal == SIGABRT { return nil }
        return
      }
      // Faults have positive codes.
      guard code > 0 || sender == process else { return nil }
      if code > 0 && (signal == SIGSEGV || signal == SIGBUS) { address = information.number(at: 16) }
    }

    var name: String { Self.names[signal]! }
  }

  let id: Int32
  /// A thread of it that has not ended: what all share is read through it. The main thread may have ended before the
  /// others, and has no memory then.
  var alive: Int32
  /// The program's name.
  let name: String
  let processor: Processor
  let memory: any TargetMemory
  let regions: [MappedRegion]
  var threads: [TargetThread]
  /// The signal that ended the process, if it is a core dump.
  var signal: Int32?
  /// What made it crash, if it is the core dump of a crash.
  var crash: Crash?
  /// The path of the core dump.
  var core: String?
  /// The uptime clock when it was read; nil for a core dump.
  var now: UInt64?
  /// Whether nothing in it will change: all its threads sleep for good.
  var isFrozen = false

  init(
    id: Int32, alive: Int32? = nil, name: String, processor: Processor = .here, memory: any TargetMemory,
    regions: [MappedRegion], threads: [TargetThread], signal: Int32? = nil, core: String? = nil,
    now: UInt64? = nil
  ) {
    (self.id, self.alive, self.name, self.processor) = (id, alive ?? id, name, processor)
    (self.memory, self.regions, self.threads) = (memory, regions, threads)
    (self.signal, self.core, self.now) = (signal, core, now)
  }

  /// Whether it stays as it is while it is read: all its threads sleep for good, or it is a core dump.
  var isStill: Bool { core != nil || isFrozen }

  /// Whether a signal or a debugger has stopped it.
  var isStopped: Bool { threads.contains { $0.state == "T" || $0.state == "t" } }

  func region(of address: UInt64) -> MappedRegion? {
    // Sorted by address.
    var low = 0
    var high = regions.count
    while low < high {
      let middle = (low + high) / 2
      if regions[middle].end <= address { low = middle + 1 } else { high = middle }
    }
    return low < regions.count && regions[low].contains(address) ? regions[low] : nil
  }
}

/// A thread of that process.
struct TargetThread {
  /// As the process itself knows it: the engine and the C library keep this number in its memory.
  let id: UInt32
  /// As this command's /proc knows it. Another number if the process runs in a namespace of its own, as in a container.
  var idHere: UInt32
  /// As `ps` shows it; nil in a core dump.
  var name: String?
  /// The kernel's letter: R, S, D, T, t, Z; nil in a core dump.
  var state: Character?
  /// The system call that it is in, and its arguments.
  var call: (number: Int, arguments: [UInt64])?
  /// How often it had slept when this was read, before the system call; nil in a core dump.
  var activity: ThreadActivity?
  var programCounter: UInt64 = 0
  var stackPointer: UInt64 = 0
  /// Unknown for a thread that was not stopped.
  var framePointer: UInt64?
  var threadPointer: UInt64?

  /// On arm64: where the function returns to, unless it has called another one since.
  var returnAddress: UInt64?
  /// On arm64: the number and the arguments of a system call, if it is in one.
  var registersOfCall: (number: Int, arguments: [UInt64])?

  init(id: UInt32, idHere: UInt32? = nil) { (self.id, self.idHere) = (id, idHere ?? id) }
}

extension TargetProcess {
  /// Whether there is such a process, and it has not ended.
  static func isAlive(_ id: Int32) -> Bool { thread(of: id) != nil }

  /// A thread of the process that has not ended: the main thread, or one of the engine's, which stay, or any.
  static func thread(of id: Int32) -> Int32? {
    func isAlive(_ thread: Int32) -> Bool {
      guard let status = ProcFile.read("/proc/\(id)/task/\(thread)/status") else { return false }
      let state = ProcFile.value(of: "State", in: status)
      return !state.hasPrefix("Z") && !state.hasPrefix("X")
    }
    if isAlive(id) { return id }
    let others = ProcFile.numbers(in: "/proc/\(id)/task").filter(isAlive)
    return others.first { thread in
      ProcFile.read("/proc/\(id)/task/\(thread)/comm")?.hasPrefix("concourse") ?? false
    } ?? others.first
  }

  /// Reads /proc/PID. A thread that sleeps in a system call is not disturbed; one that runs is stopped for some
  /// microseconds, one after the other, to read its registers, unless `stopsThreads` is false.
  static func live(_ id: Int32, readsThreads: Bool = true, stopsThreads: Bool = true) throws(Failure)
    -> TargetProcess
  {
    let folder = "/proc/\(id)"
    guard access(folder, F_OK) == 0 else { throw Failure(reason: "no process \(id)") }
    guard let status = ProcFile.read(folder + "/status"),
      !ProcFile.value(of: "Kthread", in: status).elementsEqual("1"),
      let process = Int32(ProcFile.value(of: "Tgid", in: status))
    else { throw Failure(reason: "\(id) is not a process of a program") }
    guard process == id else { throw Failure(reason: "\(id) is a thread of process \(process)") }
    let name = String(ProcFile.value(of: "Name", in: status))
    guard let alive = thread(of: id) else {
      throw Failure(reason: "process \(id) (\(name)) has ended and waits for its parent to notice")
    }
    let memory = LiveMemory(process: alive)
    let mapsPath = "/proc/\(alive)/maps"
    guard let maps = ProcFile.read(mapsPath) else {
      let error = lastError()
      if error == EACCES || error == EPERM {
        throw Failure(
          reason: "process \(id) (\(name)): not permitted; reading it needs the permissions of ptrace")
      }
      throw Failure(reason: "process \(id) (\(name)): \(describe(error: error))")
    }
    var regions = maps.split(separator: "\n").compactMap { MappedRegion(line: $0) }
    guard !regions.isEmpty else { throw Failure(reason: "\(id) is not a process of a program") }
    if let first = regions.first(where: { $0.isReadable }) {
      var byte: UInt8 = 0
      let result = tracing_read(alive, first.start, &byte, 1)
      if result == -Int(EPERM) {
        throw Failure(
          reason: "process \(id) (\(name)): not permitted; reading it needs the permissions of ptrace")
      }
      if result == -Int(ESRCH) { throw Failure(reason: "process \(id) (\(name)) has ended") }
      if result < 0 { throw Failure(reason: "process \(id) (\(name)): \(describe(error: Int32(-result)))") }
    }
    var threads: [TargetThread] = []
    for thread in readsThreads ? ProcFile.numbers(in: folder + "/task") : [] {
      guard let read = TargetThread(process: id, thread: thread, stops: stopsThreads), read.state != "Z"
      else {
        continue
      }
      threads.append(read)
    }
    // Once more: threads may have been made meanwhile, and their stacks are needed.
    if let maps = ProcFile.read(mapsPath) {
      regions = maps.split(separator: "\n").compactMap { MappedRegion(line: $0) }
    }
    return TargetProcess(
      id: id, alive: alive, name: name, memory: memory, regions: regions, threads: threads,
      now: UptimeClock.now)
  }
}

extension TargetThread {
  init?(process: Int32, thread: Int32, stops: Bool = true) {
    let folder = "/proc/\(process)/task/\(thread)"
    guard let stat = ProcFile.read(folder + "/stat"), let open = stat.firstIndex(of: "("),
      let close = stat.lastIndex(of: ")")
    else { return nil }
    // The last of the numbers is the one of the innermost namespace.
    let status = ProcFile.read(folder + "/status") ?? ""
    let numbers = ProcFile.value(of: "NSpid", in: status)
    let own = numbers.split(separator: "\t").last.flatMap { UInt32($0) }
    self.init(id: own ?? UInt32(thread), idHere: UInt32(thread))
    activity = ThreadActivity(status: status)
    name = String(stat[stat.index(after: open)..<close])
    state = stat[close...].dropFirst(2).first
    let words = (ProcFile.read(folder + "/syscall") ?? "").split(whereSeparator: { $0 == " " || $0 == "\n" })
    func hex(_ word: Substring) -> UInt64? { UInt64(word.dropFirst(2), radix: 16) }
    if words.count == 9, let number = Int(words[0]), let stack = hex(words[7]), let counter = hex(words[8]) {
      call = (number, words[1...6].map { hex($0) ?? 0 })
      (stackPointer, programCounter) = (stack, counter)
      return
    }
    // A thread that sleeps uninterruptibly, as in a page fault on a file system that does not answer, does not stop.
    guard stops, state != "D", state != "Z" else { return }
    var registers = [UInt64](repeating: 0, count: Processor.here.registers)
    let size = registers.withUnsafeMutableBytes { tracing_registers(thread, $0.baseAddress!, $0.count) }
    if size > 0 { take(registers: registers, of: .here) }
  }
}

/// Files of /proc, whose size is not known before they are read.
enum ProcFile {
  /// nil, with `errno` set, if it cannot be read.
  static func read(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = Glibc.read(descriptor, &piece, piece.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { return nil }
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += piece[..<count]
    }
  }

  /// The value after `key` and a colon.
  static func value(of key: String, in text: String) -> Substring {
    for line in text.split(separator: "\n") where line.hasPrefix(key + ":") {
      return line.dropFirst(key.count + 1).drop { $0 == "\t" || $0 == " " }
    }
    return ""
  }

  /// The numbers among the names in a folder, sorted.
  static func numbers(in folder: String) -> [Int32] {
    guard let stream = opendir(folder) else { return [] }
    defer { closedir(stream) }
    var found: [Int32] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if let number = Int32(name) { found.append(number) }
    }
    return found.sorted()
  }

  static func link(_ path: String) -> String? {
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = bytes.withUnsafeMutableBytes {
      readlink(path, $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
    }
    return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
  }
}

enum UptimeClock {
  static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

enum WallClock {
  static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
