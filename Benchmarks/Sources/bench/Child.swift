import CBench
import Glibc

/// Runs a program to its end and returns what it wrote to standard output; its standard error is
/// ours. A program that writes nothing for `timeLimit` seconds is killed: a hang is a result too.
///
/// - Parameter library: the libdispatch.so that it is to run on; nil where it brings its own runtime.
func output(
  of program: String, _ arguments: [String], on library: Library? = nil, timeLimit: Int = 120
) throws(Failure) -> String {
  let name = ([program] + arguments).joined(separator: " ")
  var ends: [Int32] = [-1, -1]
  guard pipe(&ends) == 0 else { throw Failure("pipe: \(errorText())") }
  let (reading, writing) = (ends[0], ends[1])
  // The child keeps the copy that is its standard output, and no other.
  for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
  defer { close(reading) }

  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  posix_spawn_file_actions_adddup2(&actions, writing, STDOUT_FILENO)

  let started = Swift.Result { () throws(Failure) in
    try start(program, arguments, environment: library?.environment ?? ownEnvironment(), &actions)
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

/// NAME=value, as this program was given them.
func ownEnvironment() -> [String] {
  var variables: [String] = []
  var next = bench_environment()
  // SAFETY: the list ends with a null pointer, and nobody changes it: this program has one thread.
  while let variable = next.pointee {
    variables.append(String(cString: variable))
    next += 1
  }
  return variables
}

/// Starts a program and returns at once.
///
/// - Parameter environment: NAME=value.
func start(
  _ program: String, _ arguments: [String], environment: [String],
  _ actions: inout posix_spawn_file_actions_t
) throws(Failure) -> pid_t {
  // SAFETY: the copies live until this function returns; the child gets its own.
  let words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
  defer { for word in words { free(word) } }
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

/// What a wait status says. (wait.h says it in macros, which Swift does not see.)
func ending(_ status: Int32) -> String {
  let signal = status & 0x7F
  return signal == 0 ? "exit status \((status >> 8) & 0xFF)" : "killed by signal \(signal)"
}

/// Everything until end of file; nil if nothing came for too long.
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

/// The folder of this program, where the build puts the programs that it compares.
func ownFolder() throws(Failure) -> String {
  var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
  let count = readlink("/proc/self/exe", &buffer, buffer.count)
  guard count > 0, let slash = buffer[..<count].lastIndex(of: UInt8(ascii: "/")) else {
    throw Failure("cannot find the folder of this program")
  }
  return String(decoding: buffer[..<slash], as: UTF8.self)
}
