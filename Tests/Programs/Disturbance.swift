// The conditions under which the soak runs change. What the system does not permit is counted, and left.

#if CONCOURSE
  import ConcourseEvents
  import Glibc

  final class Disturbance {
    private enum Kind: String, CaseIterable {
      case processors, signal, fork, niceness, realTime, descriptors, quota
    }

    /// Under the thread sanitizer, forked children hang and handlers of signals are held back.
    private let kinds = Kind.allCases.filter { !Soak.isSanitized || ($0 != .fork && $0 != .signal) }
    private unowned let soak: Soak
    private var dice: Dice
    private var done: [Kind: Int] = [:]
    private var refused: [Kind: Int] = [:]
    private typealias Affinity = @convention(c) (pid_t, Int, UnsafeMutablePointer<cpu_set_t>) -> Int32
    private let setAffinity: Affinity
    private let processors: cpu_set_t
    private let idle = DispatchQueue(label: "soak.fork")
    private let makeChild: @convention(c) () -> pid_t
    private var group: ControlGroup?

    init(_ soak: Soak, _ dice: Dice) {
      self.soak = soak
      self.dice = dice
      // SAFETY: the types of glibc's functions, which Swift does not see. A forked child makes one `sync` and
      // ends.
      makeChild = unsafeBitCast(dlsym(nil, "fork"), to: (@convention(c) () -> pid_t).self)
      setAffinity = unsafeBitCast(dlsym(nil, "sched_setaffinity"), to: Affinity.self)
      var set = cpu_set_t()
      _ = unsafeBitCast(dlsym(nil, "sched_getaffinity"), to: Affinity.self)(
        0, MemoryLayout<cpu_set_t>.size, &set)
      processors = set
      idle.sync {}
      // Interrupts system calls.
      var action = sigaction()
      action.__sigaction_handler.sa_handler = { _ in }
      sigaction(SIGUSR2, &action, nil)
      group = ControlGroup()
    }

    var report: String {
      let parts = kinds.map { kind in
        "\(kind) \(done[kind] ?? 0)" + (refused[kind].map { " (refused \($0))" } ?? "")
      }
      return "changed conditions: \(parts.joined(separator: ", "))"
    }

    /// Changes one condition, for some milliseconds.
    func once() {
      usleep(useconds_t(5000 + dice.below(60_000)))
      let kind = kinds[dice.below(kinds.count)]
      if change(kind) { done[kind, default: 0] += 1 } else { refused[kind, default: 0] += 1 }
    }

    /// Leaves the control group.
    func finish() { group?.leave() }

    /// Makes all conditions as they were.
    func restore() {
      for thread in Self.threads { bind(thread, processors) }
      group?.setQuota("max 100000")
    }

    private func change(_ kind: Kind) -> Bool {
      switch kind {
      case .processors:
        // All threads on one processor; a thread started meanwhile stays there until the next rest.
        var one = cpu_set_t()
        let allowed = (0..<64).filter { Self.has(processors, $0) }
        Self.add(&one, allowed[dice.below(allowed.count)])
        let isDone = Self.threads.map { bind($0, one) }.contains(true)
        usleep(useconds_t(dice.below(30_000)))
        for thread in Self.threads { bind(thread, processors) }
        return isDone
      case .signal:
        for _ in 0..<10 { kill(getpid(), SIGUSR2) }
        return true
      case .fork: return fork()
      case .niceness:
        guard let thread = someThread() else { return false }
        let before = getpriority(Self.oneThread, id_t(thread))
        guard setpriority(Self.oneThread, id_t(thread), 19) == 0 else { return false }
        usleep(useconds_t(dice.below(30_000)))
        // The thread may have ended.
        return setpriority(Self.oneThread, id_t(thread), before) == 0 || errno == ESRCH
      case .realTime:
        guard let thread = someThread() else { return false }
        var parameters = sched_param()
        parameters.sched_priority = 1
        guard sched_setscheduler(thread, SCHED_RR, &parameters) == 0 else { return false }
        usleep(5000)
        parameters.sched_priority = 0
        return sched_setscheduler(thread, SCHED_OTHER, &parameters) == 0 || errno == ESRCH
      case .descriptors:
        // No new descriptor can be made.
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(7), &limit)
        let before = limit
        limit.rlim_cur = 3
        guard setrlimit(__rlimit_resource_t(7), &limit) == 0 else { return false }
        usleep(useconds_t(dice.below(10_000)))
        var restored = before
        return setrlimit(__rlimit_resource_t(7), &restored) == 0
      case .quota:
        guard let group, group.setQuota("\(20_000 + dice.below(80_000)) 100000") else { return false }
        usleep(useconds_t(dice.below(300_000)))
        return group.setQuota("max 100000")
      }
    }

    /// A child makes a `sync` on an idle queue and ends.
    private func fork() -> Bool {
      let child = makeChild()
      if child == 0 {
        var value: Int32 = 0
        idle.sync { value = 42 }
        _exit(value)
      }
      guard child > 0 else { return false }
      var status: Int32 = 0
      // Of 10 ms. A child that waits for a processor, on a loaded machine, does not hang.
      var looksAsleep = 0
      var ticks = 0
      while looksAsleep < 2000 && ticks < 2000 {
        if waitpid(child, &status, WNOHANG) == child {
          soak.expect(status == 42 << 8, "a forked child ended with status \(status)")
          return true
        }
        usleep(10_000)
        let state = Self.state(of: child)
        if state.isAsleep { looksAsleep += 1 }
        ticks = state.ticks
      }
      soak.expect(false, "a forked child hangs: asleep at \(looksAsleep) looks, has run \(ticks) ticks")
      kill(child, SIGKILL)
      return waitpid(child, &status, 0) == child
    }

    /// Of a process: whether it sleeps, and its processor time in ticks of 10 ms.
    private static func state(of process: pid_t) -> (isAsleep: Bool, ticks: Int) {
      guard let file = fopen("/proc/\(process)/stat", "re") else { return (true, 0) }
      defer { fclose(file) }
      var line = [CChar](repeating: 0, count: 1024)
      guard fgets(&line, Int32(line.count), file) != nil else { return (true, 0) }
      // The name, which ends with the last parenthesis, may have spaces.
      let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
      guard fields.count > 13, let user = Int(fields[12]), let system = Int(fields[13]) else {
        return (true, 0)
      }
      return (fields[1] != "R", user + system)
    }

    // MARK: - Threads

    /// `PRIO_PROCESS`, which names a thread on Linux.
    private static let oneThread: __priority_which_t = 0

    private static var threads: [pid_t] { names(in: "/proc/self/task").compactMap { pid_t($0) } }

    private func someThread() -> pid_t? { Self.threads.filter { $0 != getpid() }.randomElement(using: &dice) }

    @discardableResult
    private func bind(_ thread: pid_t, _ set: cpu_set_t) -> Bool {
      var set = set
      return setAffinity(thread, MemoryLayout<cpu_set_t>.size, &set) == 0
    }

    private static func has(_ set: cpu_set_t, _ processor: Int) -> Bool {
      withUnsafeBytes(of: set) { $0[processor / 8] >> (processor % 8) & 1 == 1 }
    }

    private static func add(_ set: inout cpu_set_t, _ processor: Int) {
      withUnsafeMutableBytes(of: &set) { $0[processor / 8] |= 1 << (processor % 8) }
    }

    /// The names in a folder, but for its own descriptor.
    static func names(in folder: String) -> [String] {
      guard let listing = opendir(folder) else { return [] }
      defer { closedir(listing) }
      var names: [String] = []
      while let entry = readdir(listing) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != "..", name != String(dirfd(listing)) { names.append(name) }
      }
      return names
    }
  }

  /// A control group of its own for this process, with a quota, where the system permits one.
  private struct ControlGroup {
    private let path: String

    init?() {
      guard let file = fopen("/proc/self/cgroup", "r") else { return nil }
      defer { fclose(file) }
      var line = [CChar](repeating: 0, count: 4096)
      var own: String?
      while fgets(&line, Int32(line.count), file) != nil {
        let text = String(
          decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if text.hasPrefix("0::") { own = String(text.dropFirst(3)) }
      }
      guard let own else { return nil }
      path = "/sys/fs/cgroup\(own == "/" ? "" : own)/soak-\(getpid())"
      guard mkdir(path, 0o755) == 0 else { return nil }
      guard Self.write("\(getpid())", to: path + "/cgroup.procs"), setQuota("max 100000") else {
        rmdir(path)
        return nil
      }
    }

    @discardableResult
    func setQuota(_ quota: String) -> Bool { Self.write(quota, to: path + "/cpu.max") }

    func leave() {
      _ = Self.write("\(getpid())", to: String(path.prefix(upTo: path.lastIndex(of: "/")!)) + "/cgroup.procs")
      rmdir(path)
    }

    private static func write(_ text: String, to path: String) -> Bool {
      let file = open(path, O_WRONLY | O_CLOEXEC)
      guard file >= 0 else { return false }
      defer { close(file) }
      return Glibc.write(file, text, text.utf8.count) == text.utf8.count
    }
  }
#endif
