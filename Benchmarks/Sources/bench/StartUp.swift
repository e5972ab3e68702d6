import CBench
import Glibc

/// Wall time from posix_spawn to the end of a program that does next to nothing. Judged by the difference, not by the
/// ratio, and by medians: a minimum would hide what is late on most runs.
struct StartUp {
  /// The most that Concourse may take longer, in milliseconds.
  static let limit = 0.25

  let program: String
  let folder: String
  let libraries: Libraries

  /// Medians, in milliseconds.
  struct Result {
    let program: String
    let incumbent: Double
    let concourse: Double

    var difference: Double { concourse - incumbent }
    var holds: Bool { difference <= StartUp.limit }

    /// A row of the table.
    var cells: [String] {
      [
        program, "\(fixed(incumbent, 2)) ms", "\(fixed(concourse, 2)) ms",
        (difference < 0 ? "-" : "+") + "\(fixed(abs(difference), 2)) ms",
        "<= +\(short(StartUp.limit)) ms", holds ? "ok" : "MISSED",
      ]
    }
  }

  func measure(runs: Int) throws(Failure) -> Result {
    var times: [[Double]] = [[], []]
    for (_, library) in libraries.both {
      let printed = try output(of: "\(folder)/\(program)", [], on: library)
      guard printed == "hello\n" else { throw Failure("\(program) on \(library.path) printed: \(printed)") }
    }
    // The first run on either library reads files that the later ones find in memory.
    for run in 0...runs {
      for (index, entry) in libraries.both.enumerated() {
        let time = try milliseconds(on: entry.library)
        if run > 0 { times[index].append(time) }
      }
    }
    return Result(program: program, incumbent: median(times[0]), concourse: median(times[1]))
  }

  private func milliseconds(on library: Library) throws(Failure) -> Double {
    let begin = bench_now()
    let child = try start("\(folder)/\(program)", [], on: library) {
      posix_spawn_file_actions_addopen(&$0, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    }
    let status = status(of: child)
    let time = bench_now() - begin
    guard status == 0 else { throw Failure("\(program) on \(library.path): \(ending(status))") }
    return Double(time) / 1e6
  }
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
