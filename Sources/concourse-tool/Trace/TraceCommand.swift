import CTracing
import ConcourseRecording
import Glibc

/// `concourse trace`: records for a while, or reads a recording, and writes a trace.
enum TraceCommand: Command {
  static let summary = "records what a process on Concourse does, and writes a file that shows it"

  static func run(_ options: TraceOptions, _ arguments: [String]) -> Int32 {
    do {
      switch options.target {
      case .recording(let path):
        try write(reader(of: path), options)
        return 0
      case .process(let process):
        try check(options.output)
        let reader = try LiveRecording.record(process, seconds: options.seconds ?? 1)
        try write(reader, options, TasksAtEnd.read(process), root: "/proc/\(process)/root")
        return 0
      case .program(let index):
        try check(options.output)
        return try TracedProgram.run(arguments, index, options)
      }
    } catch {
      Terminal.printError(error.reason)
      return RunCommand.Status.failure
    }
  }

  /// What a flight recorder has left.
  static func reader(of path: String) throws(RecordingFailure) -> RecordingReader {
    guard let file = FileBytes(path: path) else {
      throw RecordingFailure("\(path) cannot be read: \(describe(error: lastError()))")
    }
    let reader: RecordingReader
    do { reader = try RecordingReader(file) } catch { throw RecordingFailure("\(path): \(error.reason)") }
    reader.poll()
    let recording = reader.recording()
    guard !recording.events.isEmpty else {
      throw RecordingFailure("\(path) has no events\(recording.losses)")
    }
    return reader
  }

  /// Finds before the recording that its result could not be written.
  /// - Parameter path: nil for a file with a name of ours.
  static func check(_ path: String?) throws(RecordingFailure) {
    guard let path else {
      guard access(".", W_OK | X_OK) == 0 else {
        throw RecordingFailure("the working directory cannot be written: \(describe(error: lastError()))")
      }
      return
    }
    do throws(OutputFile.Failure) { try OutputFile.check(path) } catch {
      throw RecordingFailure("\(error.path) cannot be written: \(error.reason)")
    }
  }

  static func write(
    _ reader: RecordingReader, _ options: TraceOptions, _ tasks: TasksAtEnd? = nil, root: String = ""
  ) throws(RecordingFailure) {
    var recording = reader.recording()
    // A recording has the names of tasks that have submitted an item or waited.
    if let tasks { recording.tasks.merge(tasks.names) { recorded, _ in recorded } }
    let names = FunctionNames(recording, root: root)
    names.nameQueues(&recording)
    names.nameThunks(&recording)
    let format = options.output.flatMap { TraceFormat(path: $0) } ?? .json
    let encode: TraceSize.Encoding = { recording throws(RecordingFailure) in
      try format.write(recording, tasks) { names.name(of: $0) }
    }
    if let last = options.last { recording = recording.last(nanoseconds: last) }
    let all = recording.events.count
    let bytes: [UInt8]
    if let limit = options.limit {
      bytes = try TraceSize.write(&recording, limit: limit, encode)
    } else {
      let size = try TraceSize.expected(recording, encode)
      if size >= TraceSize.large {
        Terminal.printError(
          "the trace will have about \(TraceSize.bytes(size)); --last, --limit and .json.gz make it smaller")
      }
      bytes = try encode(recording)
    }
    let left = all - recording.events.count
    let omitted = left > 0 ? "; \(left) older ones are left out by --limit" : ""
    do throws(OutputFile.Failure) {
      let file =
        if let path = options.output { try OutputFile(named: path) } else {
          try OutputFile(free: "concourse-\(recording.process)", ".json")
        }
      try file.write(bytes)
      Terminal.printError(
        "\(file.path): \(recording.events.count) events, \(TraceSize.bytes(bytes.count))\(omitted)\(recording.losses)"
      )
      let reason = SlowReason(recording, Timeline(recording)) { names.name(of: $0) }
      Terminal.printError(ForeignText.line(reason.sentence))
      if let tasks { Terminal.printError(tasks.text) }
      if let notice = recording.lossNotice { Terminal.printError(notice) }
    } catch {
      throw RecordingFailure("\(error.path) cannot be written: \(error.reason)")
    }
  }
}

/// Runs a program with its recording in a file that this process reads at the same time.
enum TracedProgram {
  /// Records of a ring: what a thread may do between two looks.
  private static let capacity = 1 << 17
  private static let microsecondsBetweenLooks: UInt32 = 5000

  /// The program, to which a signal to end this process is passed on.
  // SAFETY: written once, before the handlers that read it are installed.
  nonisolated(unsafe) private static var traced: pid_t = 0

  /// - Returns: the program's exit status.
  static func run(_ arguments: [String], _ index: Int, _ options: TraceOptions) throws(RecordingFailure)
    -> Int32
  {
    let place = Environment.current().text(of: "TMPDIR") ?? "/tmp"
    guard let template = strdup("\(place)/concourse-trace-XXXXXX"), mkdtemp(template) != nil else {
      throw RecordingFailure("no temporary folder in \(place): \(describe(error: lastError()))")
    }
    let folder = String(cString: template)
    free(template)
    defer { remove(folder) }
    // Larger rings, if the user asks for them.
    let wanted = Environment.current().text(of: "CONCOURSE_RECORDER").flatMap { Int($0) } ?? 0
    setenv("CONCOURSE_RECORDER", "\(max(capacity, wanted))", 1)
    setenv("CONCOURSE_RECORDER_DIR", folder, 1)
    setenv("CONCOURSE_RECORDER_KEEP", "1", 1)
    // The programs that this one starts are not recorded: their files would not be read.
    setenv("CONCOURSE_RECORDER_PARENT", "\(getpid())", 1)
    let process = try start(arguments[index], index, library: options.library)
    // The terminal sends these to the program too, which decides.
    signal(SIGINT, SIG_IGN)
    signal(SIGQUIT, SIG_IGN)
    traced = process
    for number in [SIGTERM, SIGHUP] { signal(number) { kill(TracedProgram.traced, $0) } }

    var reader: RecordingReader?
    var status: Int32 = 0
    // Why the recording cannot be read, and why nothing was written.
    var unread: RecordingFailure?
    var failure: RecordingFailure?
    var isWritten = false
    let end = options.seconds.map { UptimeClock.now + UInt64($0 * 1e9) }
    while true {
      let hasEnded = waitpid(process, &status, isWritten ? 0 : WNOHANG) == process
      if reader == nil, let file = FileBytes(path: "\(folder)/concourse-\(process).recording") {
        // Perhaps the program is still making it.
        do { reader = try RecordingReader(file) } catch { unread = error }
      }
      if !isWritten {
        reader?.watchedUntil = UptimeClock.now
        reader?.poll()
      }
      if !isWritten && (hasEnded || end.map { UptimeClock.now > $0 } == true) {
        // Without the permissions of ptrace, recording cannot be switched off, and the program goes on with it.
        if !hasEnded { try? LiveRecording(process).endFlightRecorder() }
        if let reader, reader.hasEvents {
          let tasks = hasEnded ? nil : TasksAtEnd.read(process)
          do { try TraceCommand.write(reader, options, tasks) } catch { failure = error }
        } else if reader == nil, let unread {
          failure = unread
        } else if !hasEnded || !RunCommand.Status.notStarted.contains(status >> 8) {
          // Else `concourse run` has said why.
          Terminal.printError("\(arguments[index]) has done nothing on Concourse's queues")
        }
        isWritten = true
      }
      if hasEnded { break }
      if !isWritten { usleep(microsecondsBetweenLooks) }
    }
    if let failure { throw failure }
    let killed = status & 0x7F
    return killed == 0 ? status >> 8 & 0xFF : 128 + killed
  }

  /// Starts the program as it is if it contains Concourse, else through `concourse run`. A signal that ends this command
  /// at once, at any time, ends the program, too.
  /// - Parameters:
  ///   - output: What becomes its standard output; -1 for this command's.
  ///   - isApart: Whether it gets no keys, neither as input nor as signals, and prints its errors to `output`.
  static func start(
    _ program: String, _ index: Int, library: String?, output: Int32 = -1, isApart: Bool = false
  ) throws(RecordingFailure) -> pid_t {
    let environment = Environment.current()
    guard case .found(let path) = ProgramSearch.find(program, searchPath: environment.text(of: "PATH")) else {
      throw RecordingFailure("\(program): no such program, or it cannot be run")
    }
    // SAFETY: the rest of the kernel's argument array, with its terminating null. Arguments need not be valid text.
    let rest = CommandLine.unsafeArgv + 2 + index
    var words: [UnsafeMutablePointer<CChar>?] = []
    var command = path
    if !contains(path) {
      command = "/proc/self/exe"
      let options = library.map { ["--library", $0] } ?? []
      words = (["concourse", "run"] + options + ["--"]).map { strdup($0) }
    }
    var place = 0
    while let word = rest[place] {
      words.append(word)
      place += 1
    }
    words.append(nil)
    let process = tracing_start(command, words, environ, output, isApart ? 1 : 0)
    guard process >= 0 else {
      throw RecordingFailure("\(program) cannot be run: \(describe(error: -process))")
    }
    return process
  }

  /// Whether a program contains Concourse, or uses a libdispatch.so that is Concourse's.
  private static func contains(_ path: String) -> Bool {
    guard let image = try? ElfImage(path: path) else { return false }
    if image.section(named: noteSection) != nil { return true }
    let search = LibrarySearch(environment: Environment.current())
    return search.closure(of: image).loaded.contains { $0.image.section(named: noteSection) != nil }
  }

  static let noteSection = ".note.concourse.recording"

  private static func remove(_ folder: String) {
    guard let stream = opendir(folder) else { return }
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != "." && name != ".." { unlink(folder + "/" + name) }
    }
    closedir(stream)
    rmdir(folder)
  }
}
