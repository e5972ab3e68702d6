import Glibc

/// Why a comparison could not be made; ends the program with status 2.
struct Failure: Error {
  let message: String
  init(_ message: String) { self.message = message }
}

// MARK: Child processes

/// Runs a program to its end and returns its standard output; its standard error is ours. A program that writes nothing
/// for `timeLimit` seconds is killed: a hang is a result too.
///
/// - Parameter library: the libdispatch.so that the program runs on; nil if it brings its own runtime.
func output(
  of program: String, _ arguments: [String], on library: Library? = nil, timeLimit: Int = 120
) throws(Failure) -> String {
  let name = ([program] + arguments).joined(separator: " ")
  var ends: [Int32] = [-1, -1]
  guard pipe(&ends) == 0 else { throw Failure("pipe: \(errorText())") }
  // The child keeps only the copy that is its standard output.
  for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
  let (reading, writing) = (ends[0], ends[1])
  defer { close(reading) }

  let started = Swift.Result { () throws(Failure) in
    try start(program, arguments, on: library) {
      posix_spawn_file_actions_adddup2(&$0, writing, STDOUT_FILENO)
    }
  }
  close(writing)
  let child = try started.get()

  guard let text = readAll(reading, timeLimit: timeLimit) else {
    kill(child, SIGKILL)
    _ = status(of: child)
    throw Failure("\(name): no output within \(timeLimit) s, killed")
  }
  let status = status(of: child)
  guard status == 0 else { throw Failure("\(name): \(ending(status))") }
  return text
}

/// Starts a program and returns at once.
///
/// - Parameter redirect: adds what becomes of the child's descriptors.
func start(
  _ program: String, _ arguments: [String], on library: Library?,
  _ redirect: (inout posix_spawn_file_actions_t) -> Void = { _ in }
) throws(Failure) -> pid_t {
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  redirect(&actions)
  // SAFETY: the copies live until this function returns; the child gets its own.
  let words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
  defer { for word in words { free(word) } }
  let environment = if let library { library.environment } else { try ownEnvironment() }
  // SAFETY: as above.
  let variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
  defer { for variable in variables { free(variable) } }
  var child = pid_t()
  let error = posix_spawn(&child, program, &actions, nil, words, variables)
  guard error == 0 else { throw Failure("cannot start \(program): \(errorText(error))") }
  return child
}

func status(of child: pid_t) -> Int32 {
  var status: Int32 = 0
  while waitpid(child, &status, 0) < 0 {
    guard errno == EINTR else { return -1 }
  }
  return status
}

/// A wait status in words. (The macros of wait.h are not visible to Swift.)
func ending(_ status: Int32) -> String {
  let signal = status & 0x7F
  return signal == 0 ? "exit status \((status >> 8) & 0xFF)" : "killed by signal \(signal)"
}

/// NAME=value, as this program was given them.
private func ownEnvironment() throws(Failure) -> [String] {
  try readText("/proc/self/environ").split(separator: "\0").map(String.init)
}

/// The folder of this program, where the build puts the programs that it compares.
func ownFolder() throws(Failure) -> String { folder(of: try canonical("/proc/self/exe")) }

// MARK: Libraries

/// A libdispatch.so that finished programs can be started on.
struct Library {
  /// Its canonical path, as the kernel shows it in a process's map.
  let path: String
  /// Makes the loader choose it.
  let environment: [String]
}

/// The two libraries, each linked as `libdispatch.so` in a folder of its own under TMPDIR. The loader searches folders,
/// and a library may have another file name, or neighbours that must not be loaded.
struct Libraries {
  private(set) var both: [(name: String, library: Library)] = []
  private let root: String

  init(incumbent: String, concourse: String) throws(Failure) {
    let paths = (try canonical(incumbent), try canonical(concourse))
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/concourse-bench-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure("\(parent): \(errorText())") }
    root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let others = try ownEnvironment().filter {
      !$0.hasPrefix("LD_LIBRARY_PATH=") && !$0.hasPrefix("LD_PRELOAD=")
    }
    // A linked library finds the Blocks and Swift runtimes beside the incumbent, not beside its link.
    let toolchain = folder(of: incumbent)
    for (name, path) in [(Contestant.incumbentName, paths.0), (Contestant.concourseName, paths.1)] {
      let folder = "\(root)/\(name)"
      guard mkdir(folder, 0o755) == 0, symlink(path, "\(folder)/libdispatch.so") == 0 else {
        throw Failure("\(folder): \(errorText())")
      }
      let environment = others + ["LD_LIBRARY_PATH=\(folder):\(toolchain)"]
      both.append((name, Library(path: path, environment: environment)))
    }
  }

  /// Starts `program` once on each to verify that this library, and no other, answers its calls.
  func verifyMapped(by program: String) throws(Failure) {
    for (_, library) in both {
      let mapped = try output(of: program, ["--library"], on: library).split(separator: "\n").map(String.init)
      guard mapped == [library.path] else {
        throw Failure(
          "\(program) should run on \(library.path), but has mapped \(mapped.joined(separator: ", "))")
      }
    }
  }

  /// Removes the folders.
  func remove() {
    for (name, _) in both {
      unlink("\(root)/\(name)/libdispatch.so")
      rmdir("\(root)/\(name)")
    }
    rmdir(root)
  }
}

// MARK: Files

private func canonical(_ path: String) throws(Failure) -> String {
  guard let canonical = realpath(path, nil) else { throw Failure("\(path): \(errorText())") }
  // SAFETY: realpath allocated it, and it is freed once.
  defer { free(canonical) }
  return String(cString: canonical)
}

private func folder(of path: String) -> String {
  path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
}

func readText(_ path: String) throws(Failure) -> String {
  let file = open(path, O_RDONLY | O_CLOEXEC)
  guard file >= 0 else { throw Failure("\(path): \(errorText())") }
  defer { close(file) }
  guard let text = readAll(file, timeLimit: 10) else { throw Failure("\(path): \(errorText())") }
  return text
}

func writeText(_ text: String, to path: String) throws(Failure) {
  guard let file = fopen(path, "w") else { throw Failure("\(path): \(errorText())") }
  let written = fwrite(text, 1, text.utf8.count, file)
  guard fclose(file) == 0, written == text.utf8.count else { throw Failure("\(path): \(errorText())") }
}

/// Everything until end of file; nil if nothing came for `timeLimit` seconds.
private func readAll(_ descriptor: Int32, timeLimit: Int) -> String? {
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 4096)
  while true {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    let ready = poll(&request, 1, Int32(timeLimit * 1000))
    if ready < 0 && errno == EINTR { continue }
    guard ready > 0 else { return nil }
    let count = read(descriptor, &buffer, buffer.count)
    if count < 0 && errno == EINTR { continue }
    guard count >= 0 else { return nil }
    if count == 0 { return String(decoding: bytes, as: UTF8.self) }
    bytes.append(contentsOf: buffer[..<count])
  }
}

func errorText(_ code: Int32 = errno) -> String { String(cString: strerror(code)) }

func writeToStandardError(_ text: String) {
  var text = text
  // SAFETY: the bytes are used within the closure only.
  text.withUTF8 { bytes in _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
}
