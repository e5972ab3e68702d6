import CTracing
import ConcourseRecording
import Glibc

/// Compresses with the system's `gzip`: the command links no library for it.
enum Gzip {
  static func compress(_ bytes: [UInt8]) throws(RecordingFailure) -> [UInt8] {
    let path = getenv("PATH").map { String(cString: $0) }
    guard case .found(let program) = ProgramSearch.find("gzip", searchPath: path) else {
      throw RecordingFailure("there is no gzip in PATH: end the name of the output in .json instead")
    }
    // Files in memory, not pipes: neither side waits for the other, and a gzip that fails causes no SIGPIPE.
    let (input, output) = (tracing_memory_file(), tracing_memory_file())
    defer { for file in [input, output] where file >= 0 { close(file) } }
    guard input >= 0, output >= 0, store(bytes, in: input), lseek(input, 0, SEEK_SET) == 0 else {
      throw RecordingFailure("no memory to compress the trace: \(describe(error: lastError()))")
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    var words = [strdup("gzip"), strdup("-c"), nil]
    defer { for word in words { free(word) } }
    var child: pid_t = 0
    let error = posix_spawn(&child, program, &actions, nil, &words, environ)
    guard error == 0 else { throw RecordingFailure("gzip cannot be run: \(describe(error: error))") }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    guard status == 0, let result = contents(of: output) else {
      throw RecordingFailure("gzip could not compress the trace")
    }
    return result
  }

  private static func store(_ bytes: [UInt8], in file: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  private static func contents(of file: Int32) -> [UInt8]? {
    let size = Int(lseek(file, 0, SEEK_END))
    guard size > 0 else { return nil }
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
      while filled < size {
        let room = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
        let got = pread(file, room.baseAddress, room.count, off_t(filled))
        if got < 0 && errno == EINTR { continue }
        guard got > 0 else { return }
        filled += got
      }
    }
    return bytes.count == size ? bytes : nil
  }
}
