import CTracing
import Glibc

/// The standard input of all runs. Each reads a file from its beginning. What comes through a pipe or a socket is
/// read once, to its end, and kept in such a file: otherwise each run would take a part of it.
enum ExploredInput {
  /// More than that is no input to repeat a thousand times.
  static let most = 256 << 20
  /// How long, in milliseconds, a pipe may stay silent that brings nothing at all.
  static let patience: Int32 = 1000

  /// What was read.
  enum Content: Equatable {
    /// The descriptor of a file with it.
    case kept(Int32)
    /// It has not come to its end, and has brought nothing.
    case silent
    /// It is a file, a terminal, or not there.
    case asItIs
  }

  /// Makes the runs' input of the command's own.
  static func prepare() throws(ScheduleRun.Failure) {
    switch try read(STDIN_FILENO) {
    case .kept(let file):
      dup2(file, STDIN_FILENO)
      close(file)
    case .silent:
      Terminal.printError("standard input is open, but nothing comes: the program gets an empty one")
    case .asItIs: break
    }
  }

  static func read(
    _ descriptor: Int32, most: Int = most, patience: Int32 = patience
  ) throws(ScheduleRun.Failure) -> Content {
    var status = stat()
    guard fstat(descriptor, &status) == 0, [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
    else { return .asItIs }
    var question = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&question, 1, patience) > 0 else { return .silent }
    let file = tracing_memory_file()
    guard file >= 0 else { throw failure("kept") }
    var size = 0
    // SAFETY: both calls are told how much of the buffer they may use.
    let isWhole = withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 1) { buffer in
      while size <= most {
        let count = Glibc.read(descriptor, buffer.baseAddress!, buffer.count)
        if count == 0 { return true }
        if count < 0 {
          guard errno == EINTR || errno == EAGAIN else { return false }
          poll(&question, 1, -1)
          continue
        }
        guard write(file, buffer.baseAddress!, count) == count else { return false }
        size += count
      }
      return true
    }
    if isWhole && size <= most { return .kept(file) }
    let tooMuch = ScheduleRun.Failure(
      reason: "standard input has more than \(most >> 20) MiB; give it a file")
    let reason = isWhole ? tooMuch : failure("read")
    close(file)
    throw reason
  }

  private static func failure(_ what: String) -> ScheduleRun.Failure {
    ScheduleRun.Failure(reason: "standard input cannot be \(what): \(describe(error: errno))")
  }
}
