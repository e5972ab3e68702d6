import Glibc

struct Options {
  var count: Int?
  var seed: UInt64 = {
    var random = SystemRandomNumberGenerator()
    return random.next() % 1_000_000_000
  }()
  var size = 40
  /// How often a candidate runs before it counts as right.
  var attempts = 30
  var fault: Fault?
  var kept: Set<Int>?
  var isWorker = false
  var soakMinutes: Double?

  init(_ arguments: ArraySlice<String>) {
    var rest = arguments
    func refuse(_ text: String) -> Never {
      print("programs: \(text)")
      exit(2)
    }
    while let option = rest.popFirst() {
      if option == "--worker" {
        isWorker = true
        continue
      }
      guard let value = rest.popFirst() else { refuse("\(option) needs a value, or is unknown") }
      switch option {
      case "--count": count = Int(value)
      case "--seed": seed = UInt64(value) ?? seed
      case "--size": size = max(Int(value) ?? size, 1)
      case "--attempts": attempts = Int(value) ?? attempts
      case "--keep": kept = Set(value.split(separator: ",").compactMap { Int($0) })
      case "--soak": soakMinutes = Double(value)
      case "--fault":
        guard let known = Fault(rawValue: value) else {
          refuse("the faults are \(Fault.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        fault = known
      default: refuse("\(option) is unknown")
      }
    }
  }

  var arguments: [String] {
    var list = ["--seed", "\(seed)", "--size", "\(size)"]
    if let fault { list += ["--fault", fault.rawValue] }
    if let kept { list += ["--keep", kept.sorted().map(String.init).joined(separator: ",")] }
    return list
  }

  var program: Program {
    let whole = Program(seed: seed, size: size)
    return kept.map(whole.keeping) ?? whole
  }
}

/// Prints a line at once.
func say(_ line: String) {
  let text = Array((line + "\n").utf8)
  _ = write(STDOUT_FILENO, text, text.count)
}

/// Runs programs, one line for each: "> SEED" before it runs, "! SEED TEXT" if something was wrong.
func work(_ options: Options) -> Never {
  var options = options
  for _ in 0..<(options.count ?? 1) {
    say("> \(options.seed)")
    for _ in 0..<(options.kept == nil ? 1 : options.attempts) {
      let wrong = Executor.run(options.program, fault: options.fault, patience: options.kept == nil ? 20 : 3)
      guard let first = wrong.first else { continue }
      say("! \(options.seed) \(first)")
      // After a hang, items may still run and locks be held.
      if wrong.contains(where: { $0.hasPrefix("never came") }) || options.kept != nil { exit(3) }
      break
    }
    options.seed &+= 1
  }
  exit(0)
}

/// Runs a worker to its end. Returns the seeds that failed with what was wrong, and how many programs have
/// run.
private func runWorker(_ options: Options) -> (failures: [(seed: UInt64, text: String)], count: Int) {
  var ends: [Int32] = [0, 0]
  precondition(pipe(&ends) == 0)
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
  posix_spawn_file_actions_addclose(&actions, ends[0])
  let arguments =
    ["/proc/self/exe", "--worker"] + options.arguments + ["--count", "\(options.count ?? 1)"]
    + ["--attempts", "\(options.attempts)"]
  var pointers = arguments.map { strdup($0) } + [nil]
  var child = pid_t()
  let failure = posix_spawn(&child, "/proc/self/exe", &actions, nil, &pointers, environ)
  precondition(failure == 0, "no worker: \(failure)")
  for pointer in pointers { free(pointer) }
  posix_spawn_file_actions_destroy(&actions)
  close(ends[1])

  var failures: [(seed: UInt64, text: String)] = []
  var (count, last, hangs) = (0, options.seed, false)
  var line: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 4096)
  reading: while true {
    var poller = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
    let ready = poll(&poller, 1, 120_000)
    if ready < 0, errno == EINTR { continue }
    if ready == 0 {
      hangs = true
      kill(child, SIGKILL)
      break
    }
    let length = read(ends[0], &buffer, buffer.count)
    if length <= 0 { break reading }
    for byte in buffer[..<length] {
      guard byte == UInt8(ascii: "\n") else {
        line.append(byte)
        continue
      }
      let words = String(decoding: line, as: UTF8.self).split(separator: " ", maxSplits: 2)
      line = []
      if words.first == ">", words.count > 1 {
        (count, last) = (count + 1, UInt64(words[1]) ?? last)
      } else if words.first == "!", words.count > 2 {
        failures.append((last, String(words[2])))
      }
    }
  }
  close(ends[0])
  var status: Int32 = 0
  waitpid(child, &status, 0)
  if hangs {
    failures.append((last, "the process hangs"))
  } else if status & 0x7F != 0 {
    failures.append((last, "the process ended with signal \(status & 0x7F)"))
  }
  return (failures, count)
}

private func seconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Runs all programs, and prints those that failed in their smallest form. Returns whether all were right.
func supervise(_ options: Options) -> Bool {
  let count = options.count ?? (options.kept == nil ? 2000 : 1)
  let start = seconds()
  var ran = 0
  /// How many programs failed in each way: with the same words, whatever the numbers.
  var ways: [String: Int] = [:]
  say(
    "programs \(options.seed) to \(options.seed &+ UInt64(count) - 1), of at most \(options.size) operations")
  while ran < count {
    var part = options
    part.seed = options.seed &+ UInt64(ran)
    part.count = count - ran
    let result = runWorker(part)
    ran += max(result.count, 1)
    for failure in result.failures {
      say("program \(failure.seed): \(failure.text)")
      let way = String(failure.text.filter { !$0.isNumber })
      ways[way, default: 0] += 1
      if ways[way] == 1, ways.count <= 8 { shrink(failure, options) }
    }
  }
  let time = seconds() - start
  say("\(ran) programs in \(Int(time)) s, \(Int(Double(ran) / time)) per second")
  let failed = ways.values.reduce(0, +)
  say("\(ran - failed) passed, \(failed) failed")
  return failed == 0
}

/// A lost item, a crash or a wrong log; one must not become the other while a program is shrunk.
private func sort(_ text: String) -> String {
  ["never came", "the process"].first { text.hasPrefix($0) } ?? "wrong"
}

private func shrink(_ failure: (seed: UInt64, text: String), _ options: Options) {
  var options = options
  options.seed = failure.seed
  options.count = 1
  var text = failure.text
  let shrinker = Shrinker { candidate in
    options.kept = Set(candidate.operations.map(\.number))
    guard let found = runWorker(options).failures.first, sort(found.text) == sort(failure.text) else {
      return false
    }
    text = found.text
    return true
  }
  let small = shrinker.shrink(options.program)
  options.kept = Set(small.operations.map(\.number))
  #if CONCOURSE
    let listing = small.listing(importing: "ConcourseEvents")
  #else
    let listing = small.listing()
  #endif
  say("\(text):\n\n\(listing)")
  say("once more: Scripts/programs \(options.arguments.joined(separator: " "))")
}
