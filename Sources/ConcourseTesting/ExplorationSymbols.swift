import CTracing
import Glibc

/// Names the places of return addresses in the test program, with the toolchain's `llvm-symbolizer`.
struct ExplorationSymbols {
  /// Where the test program lies in the processes of schedules.
  let base: UInt64

  /// For each list of return addresses, lines of the test program: the innermost first.
  func places(_ stacks: [[UInt64]]) -> [[String]] {
    // Return addresses: the call is before them.
    let addresses = stacks.flatMap { $0.map { $0 &- base &- 1 } }
    let lines = addresses.isEmpty ? [] : Self.lines(of: addresses)
    guard lines.count == addresses.count else { return stacks.map { _ in [] } }
    var next = 0
    return stacks.map { stack in
      defer { next += stack.count }
      let known = lines[next..<next + stack.count].compactMap { $0 }
      guard let first = known.first else { return [] }
      // The innermost is often a helper: its caller in another file says more.
      let others = known.filter { $0 != first }
      let second = others.first { $0.prefix { $0 != ":" } != first.prefix { $0 != ":" } } ?? others.first
      return [first] + (second.map { [$0] } ?? [])
    }
  }

  /// The file's name and the line of each address; none if the tool is not there.
  private static func lines(of addresses: [UInt64]) -> [String?] {
    let path = realpath("/proc/self/exe", nil)
    defer { free(path) }
    guard let tool, let path else { return [] }
    let words = [
      "--obj=\(String(cString: path))", "--no-inlines", "--output-style=GNU", "--functions=none",
      "--basenames",
    ]
    let output = Self.output(of: tool, words + addresses.map { "0x" + String($0, radix: 16) })
    // "Queues.swift:34:7", or with "?" for what is not known.
    return output.split(separator: "\n").map { text in
      let parts = text.split(separator: ":")
      guard parts.count >= 2, parts[0].hasSuffix(".swift"), let line = Int(parts[1].prefix { $0.isNumber }),
        line > 0
      else { return nil }
      return "\(parts[0]):\(line)"
    }
  }

  /// It is beside the `swift` that runs the tests.
  private static var tool: String? {
    for folder in (environment("PATH") ?? "").split(separator: ":") {
      guard let swift = realpath("\(folder)/swift", nil) else { continue }
      defer { free(swift) }
      let tool =
        String(cString: swift).split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(
          separator: "/") + "/llvm-symbolizer"
      if access(tool, X_OK) == 0 { return tool }
    }
    return nil
  }

  private static func output(of program: String, _ arguments: [String]) -> String {
    let output = tracing_memory_file()
    guard output >= 0 else { return "" }
    defer { close(output) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    let words = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var process: pid_t = 0
    guard posix_spawn(&process, program, &actions, nil, words, environ) == 0 else { return "" }
    while waitpid(process, nil, 0) < 0 && errno == EINTR {}
    var status = stat()
    guard fstat(output, &status) == 0 else { return "" }
    // SAFETY: `pread` writes at most the capacity, and says how many.
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, filled in
      filled = max(0, pread(output, buffer.baseAddress, buffer.count, 0))
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
