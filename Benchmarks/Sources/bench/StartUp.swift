import Glibc

/// What it costs that a program starts on the library at all: wall time from posix_spawn to the end of
/// the program. Start-up is judged by the difference, not by the ratio, and by medians: the minimum
/// would hide what is done late on most runs.
struct StartUp {
  /// The most that Concourse may take longer.
  static let limit = 0.25
  static let programs = ["hello-c", "hello-swift"]

  let incumbent: Library
  let concourse: Library
  let runs: Int

  struct Result {
    let program: String
    let incumbent: Double
    let concourse: Double

    var difference: Double { concourse - incumbent }
    var holds: Bool { difference <= StartUp.limit }

    /// What the table shows.
    var cells: [String] {
      [
        program, "\(fixed(incumbent, 2)) ms", "\(fixed(concourse, 2)) ms",
        (difference < 0 ? "-" : "+") + "\(fixed(abs(difference), 2)) ms",
        "<= +\(short(StartUp.limit)) ms", holds ? "ok" : "MISSED",
      ]
    }
  }

  /// Medians, in milliseconds, of programs that were seen to do what they should.
  func measure(_ program: String, at path: String) throws(Failure) -> Result {
    for library in [incumbent, concourse] {
      let said = try output(of: path, [], on: library)
      guard said == "hello\n" else { throw Failure("\(program) on \(library.path) said: \(said)") }
    }
    var times: [(incumbent: Double, concourse: Double)] = []
    // The first run of either reads files that the later ones find in memory.
    for run in 0...runs {
      let pair = (try milliseconds(path, on: incumbent), try milliseconds(path, on: concourse))
      if run > 0 { times.append(pair) }
    }
    return Result(
      program: program, incumbent: median(times.map(\.incumbent)), concourse: median(times.map(\.concourse)))
  }

  private func milliseconds(_ program: String, on library: Library) throws(Failure) -> Double {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    let begin = now()
    let status = status(of: try start(program, [], environment: library.environment, &actions))
    let time = now() - begin
    guard status == 0 else { throw Failure("\(program) on \(library.path): \(ending(status))") }
    return Double(time) / 1e6
  }
}

private func now() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
