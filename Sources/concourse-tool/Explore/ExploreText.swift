import CExploring
import ConcourseSchedules

/// What the command prints.
enum ExploreText {
  /// Lines of the program's output that are shown.
  private static let mostLines = 20
  private static let mostSwitches = 8

  static func figures(_ figures: ExplorationFigures, _ options: ExploreOptions) -> String {
    var parts = [
      count(figures.schedules, "schedule"), seconds(figures.seconds),
      "\(figures.schedules == 0 ? 0 : Int(figures.steps) / figures.schedules) decisions each",
      "strategy \(options.strategy?.rawValue ?? "in turn"), seed \(options.seed)",
    ]
    if figures.repeated > 0 { parts.append("\(figures.repeated) run twice") }
    if figures.unfinished > 0 { parts.append("\(figures.unfinished) did not come to rest") }
    return parts.joined(separator: ", ")
  }

  /// Why a token cannot be followed, which is not of this program.
  static func foreign(_ token: ScheduleToken, than program: String) -> String {
    token.isOfTest
      ? "the token is of a test; repeat it with CONCOURSE_REPLAY=\(token.text) swift test --filter TEST"
      : "the token is of another program than \(program)"
  }

  /// The probability with which PCT finds a bug of a depth in each schedule is at least 1 in the result.
  static func bound(threads: UInt32, steps: UInt64, depth: UInt32) -> Double {
    var bound = Double(max(1, threads))
    for _ in 1..<max(1, depth) { bound *= Double(max(1, steps)) }
    return bound
  }

  static func boundLine(_ figures: ExplorationFigures, depth: UInt32) -> String {
    let bound = bound(threads: figures.threads, steps: figures.mostSteps, depth: depth)
    let number = bound < 1e15 ? "\(UInt64(bound))" : "\(bound)"
    return "pct: each schedule finds a bug of depth \(depth) with a probability of at least 1 in \(number)"
  }

  /// Of long output the beginning and the end.
  static func output(_ bytes: [UInt8]) -> [String] {
    let lines = String(decoding: bytes, as: UTF8.self).split(
      separator: "\n", omittingEmptySubsequences: false)
    let all = (lines.last == "" ? lines.dropLast() : lines[...]).map { ForeignText.line(String($0)) }
    guard all.count > mostLines else { return all }
    let half = mostLines / 2
    return all.prefix(half) + ["… \(count(all.count - 2 * half, "line"))"] + all.suffix(half)
  }

  static func failure(_ found: FoundFailure, _ story: FailureStory?) -> [String] {
    var lines = [found.failure.text]
    lines += output(found.result.output).map { "  | " + $0 }
    guard found.repeats else {
      return lines + [
        "the failure did not repeat with the same switches: the program depends on something that is not controlled"
      ]
    }
    let switches = found.schedule.switches.count
    if found.isInterrupted {
      return lines + ["interrupted; so far it needs \(count(switches, "switch", "switches"))"]
    }
    if switches == 0 {
      lines.append("it needs no switch: the threads run in their usual order")
    } else {
      let before = found.trials > 0 ? " (of \(found.switchesBefore))" : ""
      lines.append("it needs \(count(switches, "switch", "switches"))\(before):")
    }
    guard let story else { return lines }
    for (index, change) in story.switches.prefix(mostSwitches).enumerated() {
      lines.append("  \(index + 1). stopped: \(change.stopped.text)")
      lines.append("     \(change.next)\(change.instead.map { ": " + after($0) } ?? "")")
    }
    if story.switches.count > mostSwitches {
      lines.append("  … and \(story.switches.count - mostSwitches) more")
    }
    lines += story.ends.prefix(mostSwitches).map { "  at the end: \($0.text)" }
    for (title, access) in zip(["one access:", "the other: "], story.accesses) {
      lines.append("  \(title) \(access)")
    }
    lines += story.waits.prefix(mostSwitches).map { "  " + $0 }
    return lines.map(ForeignText.line)
  }

  /// The boxes at the top of a page.
  static func pageLines(_ story: FailureStory) -> [(String, String)] {
    story.switches.prefix(mostSwitches).enumerated().map { index, change in
      ("Switch \(index + 1)", "stopped: \(change.stopped.text); \(change.next)")
    } + story.accesses.map { ("Access", $0) }
      + story.ends.prefix(mostSwitches).map { ("At the end", $0.text) } + story.waits.map { ("Waits", $0) }
  }

  /// What is said of runs that failed only beside others.
  static func disturbedLine(_ figures: ExplorationFigures) -> String? {
    guard let first = figures.firstDisturbed else { return nil }
    let others = figures.disturbed > 1 ? " and \(count(figures.disturbed - 1, "other"))" : ""
    return "schedule \(first + 1)\(others) failed beside other runs but not alone, and so does not count: "
      + "the runs may share a file or a port; --jobs 1 runs one at a time"
  }

  /// The command line that repeats a schedule, for a shell.
  /// - Parameter token: The token, or the file that has it.
  /// - Parameter words: The program and its arguments, as bytes.
  static func repetition(
    _ token: String, _ words: some Sequence<[UInt8]>, _ options: ExploreOptions
  ) -> String {
    var line = ["repeat it: concourse explore"]
    if options.findsRaces { line.append("--races") }
    // Both may decide whether the schedule fails.
    if let steps = options.steps { line.append("--steps \(steps)") }
    if let library = options.library { line.append("--library \(quoted(library))") }
    line += ["--replay", quoted(token), "--"]
    return (line + words.map { quoted($0) }).joined(separator: " ")
  }

  static func quoted(_ word: String) -> String { quoted(Array(word.utf8)) }

  private static let plain = Set(
    "%+,-./0123456789:=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)

  /// The word as a shell takes it. What a terminal would obey or not show is escaped, and so are bytes that are no text.
  static func quoted(_ word: [UInt8]) -> String {
    let text = String(validating: word, as: UTF8.self)
    if let text, text.unicodeScalars.allSatisfy({ $0.effect == .none }) {
      if !word.isEmpty && word.allSatisfy(plain.contains) { return text }
      // An apostrophe may be one character together with the mark behind it.
      var quoted = "'".unicodeScalars
      for scalar in text.unicodeScalars {
        if scalar == "'" { quoted.append(contentsOf: "'\\'".unicodeScalars) }
        quoted.append(scalar)
      }
      quoted.append("'")
      return String(quoted)
    }
    var quoted = "$'".unicodeScalars
    func append(escaped bytes: some Sequence<UInt8>) {
      for byte in bytes {
        let digits = String(byte, radix: 8)
        quoted.append(
          contentsOf: ("\\" + String(repeating: "0", count: 3 - digits.count) + digits).unicodeScalars)
      }
    }
    for scalar in text?.unicodeScalars ?? String.UnicodeScalarView() {
      switch scalar {
      case "'", "\\":
        quoted.append("\\")
        quoted.append(scalar)
      case "\n": quoted.append(contentsOf: "\\n".unicodeScalars)
      case "\t": quoted.append(contentsOf: "\\t".unicodeScalars)
      case _ where scalar.effect != .none: append(escaped: String(scalar).utf8)
      default: quoted.append(scalar)
      }
    }
    if text == nil {
      for byte in word {
        if plain.contains(byte) { quoted.append(Unicode.Scalar(byte)) } else { append(escaped: [byte]) }
      }
    }
    quoted.append("'")
    return String(quoted)
  }

  /// Without the thread, which the line has named.
  private static func after(_ step: FailureStory.Step) -> String {
    step.operation + (step.places.isEmpty ? "" : ": " + step.places.joined(separator: ", in "))
  }

  /// What the program uses that may differ between two runs.
  static func names(ofLeaks leaks: UInt64) -> [String] {
    [
      (CONCOURSE_EXPLORING_LEAK_PROCESS_ID, "its process id"),
      (CONCOURSE_EXPLORING_LEAK_DIRECTORY_ORDER, "the order of a directory"),
      (CONCOURSE_EXPLORING_LEAK_OUTSIDE_SOCKET, "a socket to the outside"),
      (CONCOURSE_EXPLORING_LEAK_CHILD_PROCESS, "another process"),
      (CONCOURSE_EXPLORING_LEAK_REAL_WAIT, "a wait of real time"),
    ].filter { leaks & UInt64($0.0) != 0 }.map(\.1)
  }

  static func leaks(
    _ difference: Exploration.Difference, _ leaks: UInt64, _ story: (String?, String?)
  ) -> [String] {
    var lines = ["two runs of schedule \(difference.schedule.number) differed: something is not controlled"]
    if let first = story.0 { lines.append("  the first event that differs: \(first)") }
    if let second = story.1 { lines.append("  in the other run:              \(second)") }
    let names = names(ofLeaks: leaks)
    if !names.isEmpty { lines.append("  the program uses \(names.joined(separator: ", "))") }
    return lines
  }

  static func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
    "\(number) \(number == 1 ? one : many ?? one + "s")"
  }

  private static func seconds(_ seconds: Double) -> String {
    let tenths = Int((seconds * 10).rounded())
    return "\(tenths / 10).\(tenths % 10) s"
  }
}
