import CExploring
import CTracing
import ConcourseSchedules
import Glibc

/// What is explored.
extension ExploreCommand {
  /// The library that runs one thread at a time.
  private static let libraryName = "libdispatch-exploring.so"

  /// Checks that the program can be explored, and makes what all its runs inherit.
  static func prepare(_ options: ExploreOptions) throws -> ExploredProgram {
    let words = commandLine(from: options.target)
    let name = String(decoding: words[0], as: UTF8.self)
    let environment = Environment.current()
    let path: String
    switch ProgramSearch.find(name, searchPath: environment.text(of: "PATH")) {
    case .found(let found): path = found
    case .absent: throw ScheduleRun.Failure(reason: "\(name): no such program")
    case .notRunnable(let found, let error):
      throw ScheduleRun.Failure(reason: "\(found) cannot be run: \(describe(error: error))")
    }
    try checkSanitizers(of: path, findsRaces: options.findsRaces)
    let library = try RuntimeLibrary.find(
      chosen: options.library, command: FilePath.resolved("/proc/self/exe") ?? "concourse", file: libraryName)
    let search = LibrarySearch(environment: environment)
    let verdict = ProgramCheck(target: library.image.target, search: search).verdict(on: path)
    // Threads and locks of a program without queues are explored too.
    guard verdict.isSwitchable || verdict == .withoutDispatch else {
      throw ScheduleRun.Failure(
        reason: verdict == .ownDispatch(isConcourse: true)
          ? "\(path) contains Concourse; build it without the package, on the toolchain's Dispatch, to explore it"
          : "\(path) \(verdict.description(hasRunOptions: false))")
    }
    let companions = try library.companions(in: search, for: try? ElfImage(path: path), children: false)
    var changed = environment.switched(to: companions + [library.path], children: false)
    changed.set("\(CONCOURSE_EXPLORING_VARIABLE)", to: "/proc/self/fd/\(ExploredProgram.descriptor)")
    changed.set("SWIFT_DETERMINISTIC_HASHING", to: "1")
    // A trap would start the program that prints backtraces.
    changed.set("SWIFT_BACKTRACE", to: "enable=no")
    if options.findsRaces {
      let before = environment.text(of: "TSAN_OPTIONS").map { $0 + ":" } ?? ""
      changed.set("TSAN_OPTIONS", to: before + sanitizerOptions)
    }
    try fixMachine()
    return ExploredProgram(path: path, arguments: words, environment: changed)
  }

  /// The first report ends the run, and only that of a race; places are named here, and signals are the program's. What
  /// functions of the C library access is left out: the engine and Swift's runtime call them, too.
  private static let sanitizerOptions = [
    "halt_on_error=1", "report_bugs=1", "symbolize=0", "color=never", "stack_trace_format='#%n %p'",
    "atexit_sleep_ms=0", "ignore_interceptors_accesses=1", "detect_deadlocks=0", "report_thread_leaks=0",
    "report_signal_unsafe=0", "report_destroy_locked=0", "report_mutex_bugs=0", "suppress_equal_stacks=0",
    "suppress_equal_addresses=0", "handle_segv=0", "handle_sigbus=0", "handle_sigfpe=0", "handle_sigill=0",
    "handle_abort=0", "handle_sigtrap=0", "use_sigaltstack=0", "verbosity=0",
  ].joined(separator: ":")

  /// The sanitizers take the place of the same functions as the library. Only the thread sanitizer of clang and Swift,
  /// which is in the program itself, calls the library in turn.
  private static func checkSanitizers(of path: String, findsRaces: Bool) throws {
    guard let image = try? ElfImage(path: path) else { return }
    func defines(_ names: String...) -> Bool {
      image.definesFunction(in: .dynamic) { name in names.contains { name.isEqual(to: $0.utf8) } }
    }
    if image.needed.contains(where: { $0.hasPrefix("libasan.so") }) || defines("__asan_init", "__msan_init") {
      throw ScheduleRun.Failure(reason: "\(path) is built with a sanitizer; build it without to explore it")
    }
    if image.needed.contains(where: { $0.hasPrefix("libtsan.so") || $0.hasPrefix("libclang_rt.tsan") }) {
      throw ScheduleRun.Failure(
        reason:
          "\(path) has the thread sanitizer in a library of its own; build it with swiftc or clang to explore it"
      )
    }
    let isSanitized = defines("__tsan_init")
    if isSanitized && !findsRaces {
      throw ScheduleRun.Failure(
        reason: "\(path) is built with the thread sanitizer; explore it with --races, or build it without")
    }
    if findsRaces && !isSanitized {
      throw ScheduleRun.Failure(
        reason: "\(path) is not built with the thread sanitizer, which --races needs (-sanitize=thread)")
    }
  }

  /// The words of the command line from the program on, as bytes.
  static func commandLine(from target: Int) -> [[UInt8]] {
    // SAFETY: the rest of the kernel's argument array, with its terminating null.
    let rest = CommandLine.unsafeArgv + 2 + target
    var words: [[UInt8]] = []
    while let word = rest[words.count] {
      words.append(Array(UnsafeRawBufferPointer(start: word, count: strlen(word))))
    }
    return words
  }

  /// What all runs inherit.
  private static func fixMachine() throws {
    if tracing_fix_addresses() != 0 {
      Terminal.printError("warning: the system does not fix addresses, so runs may differ")
    }
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    none.rlim_cur = 0
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    var files = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
    if files.rlim_cur <= rlim_t(ExploredProgram.descriptor) {
      files.rlim_cur = min(files.rlim_max, rlim_t(ExploredProgram.descriptor) + 24)
      guard files.rlim_cur > rlim_t(ExploredProgram.descriptor),
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files) == 0
      else {
        throw ScheduleRun.Failure(
          reason: "the limit of open files must be above \(ExploredProgram.descriptor); see 'ulimit -Hn'")
      }
    }
  }
}

/// Which program a token is of.
struct ProgramIdentity: Equatable {
  let path: String
  let name: UInt16
  let build: UInt16

  init(_ path: String) {
    self.path = path
    name = Fingerprint(FilePath.lastPart(of: path).utf8).short
    if let note = (try? ElfImage(path: path))?.section(named: ".note.gnu.build-id"), !note.isEmpty {
      build = Fingerprint(note).short
      return
    }
    var print = Fingerprint([])
    if let file = FileBytes(path: path) {
      var place: UInt64 = 0
      while place < file.size, let bytes = file.read(at: place, count: Int(min(1 << 20, file.size - place))) {
        print.add(bytes)
        place += UInt64(bytes.count)
      }
    }
    build = print.short
  }
}
