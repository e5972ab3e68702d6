import CExploring
import CTracing
import ConcourseSchedules
import Glibc

/// How the program is started for each run; the same each time, so that its memory has the same addresses.
struct ExploredProgram {
  /// The program's file.
  let path: String
  /// Its arguments, with its name.
  let arguments: [[UInt8]]
  var environment: Environment

  /// The descriptor of the shared file in the program: high, so that the program's own are as ever.
  static let descriptor: Int32 = 1000
}

/// One process that runs one schedule.
final class ScheduleRun {
  let schedule: Schedule
  private(set) var process: pid_t = 0
  private let file: ExploringFile
  private let output: Int32
  private var folder: RunFolder?
  /// Its path, also after the end. nil if there was none.
  let folderPath: String?
  private var status: Int32?
  private let begin = UptimeClock.now
  private var isLate = false

  /// A run that takes so many nanoseconds of real time is one that does not end.
  private static let longest: UInt64 = 60_000_000_000
  private static let longestInRealTime: UInt64 = 600_000_000_000

  /// Why a run could not be started.
  struct Failure: Error {
    let reason: String
  }

  init(_ program: ExploredProgram, _ schedule: Schedule) throws(Failure) {
    self.schedule = schedule
    output = tracing_memory_file()
    guard output >= 0, let file = ExploringFile(schedule) else {
      let error = errno
      if output >= 0 { close(output) }
      throw Failure(reason: "no memory for a run: \(describe(error: error))")
    }
    self.file = file
    folder = RunFolder(in: program.environment.text(of: RunFolder.variable))
    folderPath = folder?.path
    let error = start(program)
    guard error == 0 else {
      throw Failure(reason: "\(program.path) cannot be run: \(describe(error: error))")
    }
  }

  deinit {
    end()
    close(output)
  }

  private func start(_ program: ExploredProgram) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // A file is opened anew, at its beginning.
    var status = stat()
    let isFile = fstat(STDIN_FILENO, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    let input = open(isFile ? "/proc/self/fd/0" : "/dev/null", O_RDONLY | O_CLOEXEC)
    guard input >= 0 else { return errno }
    defer { close(input) }
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
    posix_spawn_file_actions_adddup2(&actions, file.descriptor, ExploredProgram.descriptor)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // A group of its own: the terminal's signals are for the command, which ends the group. The command blocks some
    // signals, which the program must not.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setpgroup(&attributes, 0)
    // The command ignores it, and the program must not.
    var pipe = sigset_t()
    sigemptyset(&pipe)
    sigaddset(&pipe, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &pipe)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF))
    let words = Self.strings(program.arguments)
    var environment = program.environment
    if let folder { environment.set(RunFolder.variable, to: folder.path) }
    let variables = Self.strings(environment.entries)
    defer { for string in words + variables { free(string) } }
    return posix_spawn(&process, program.path, &actions, &attributes, words, variables)
  }

  /// C strings, with a null at the end. The caller frees them.
  private static func strings(_ texts: [[UInt8]]) -> [UnsafeMutablePointer<CChar>?] {
    texts.map { text in
      // SAFETY: it has room for the text and its end, and all of it is written.
      let copy = malloc(text.count + 1)!.assumingMemoryBound(to: CChar.self)
      for (index, byte) in text.enumerated() { copy[index] = CChar(bitPattern: byte) }
      copy[text.count] = 0
      return copy
    } + [nil]
  }

  /// Whether the process has ended, or the library has stopped it for good.
  var isOver: Bool {
    if status != nil { return true }
    var information = siginfo_t()
    if waitid(P_PID, id_t(process), &information, WEXITED | WNOHANG | WNOWAIT) == 0,
      information.si_signo == SIGCHLD
    {
      // While the process is a zombie, the kernel gives the id of its group to no other.
      kill(-process, SIGKILL)
      reap()
      return true
    }
    if file.outcome > CONCOURSE_EXPLORING_RUNNING.rawValue { return true }
    isLate = UptimeClock.now - begin > (schedule.isRealTime ? Self.longestInRealTime : Self.longest)
    return isLate
  }

  /// Whether the library has stopped the process for good, and it still exists.
  var isStopped: Bool { process > 0 && status == nil && file.outcome > CONCOURSE_EXPLORING_RUNNING.rawValue }

  /// Ends the process and what it has started.
  func end() {
    guard process > 0 else { return }
    if status == nil {
      // It may have left its group.
      kill(-process, SIGKILL)
      kill(process, SIGKILL)
      reap()
    }
    process = 0
    folder = nil
  }

  private func reap() {
    var value: Int32 = 0
    while waitpid(process, &value, 0) < 0 && errno == EINTR {}
    status = value
  }

  /// What came of a run that is over.
  var result: ScheduleResult { ScheduleResult(file, status: status, output: written, isLate: isLate) }

  /// What the program has written, at most a megabyte.
  private var written: [UInt8] {
    var status = stat()
    // For none the standard library would write to the empty array that all threads share.
    guard fstat(output, &status) == 0, status.st_size > 0 else { return [] }
    let size = min(Int(status.st_size), 1 << 20)
    // SAFETY: `pread` writes at most `size` bytes, and says how many.
    return [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
      filled = max(0, pread(output, buffer.baseAddress, size, 0))
    }
  }
}
