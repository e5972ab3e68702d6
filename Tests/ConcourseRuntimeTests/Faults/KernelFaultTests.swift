import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// Each system call of each scenario fails once, with every errno that its manual page lists.
  @Suite("Kernel faults") struct KernelFaultTests {
    // The thread sanitizer does not allow threads in a forked child.
    @Test(
      "trap 19: the program goes on or reports the error, and nothing leaks, spins or hangs",
      .enabled(if: !Sanitizer.isThread), .timeLimit(.minutes(30)))
    func everyCallAndErrno() async {
      // The text is the verdict: an exit test that fails returns no output.
      let end = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        var sweep = FaultSweep()
        sweep.run()
        exit(0)
      }
      let text = String(decoding: end?.standardOutputContent ?? [], as: UTF8.self)
      print(text)
      #expect(text.contains(" 0 failures,"), "\(text)")
    }
  }
}

/// Runs all cases in forked children of this process, a few at a time. The process must not have used the runtime.
struct FaultSweep {
  private struct Case {
    let scenario: FaultScenario
    let refusal: Refusal
    let baseline: FaultBaseline
  }

  private struct Child {
    let process: pid_t
    let output: Int32
    let begun: Int
    let trial: Case
    var text: [UInt8] = []
    /// The system calls of its threads when it was ended because it hung.
    var calls = ""
  }

  /// Seconds after which a child hangs: a refused call may delay work by a second.
  private let patience = 60
  private let atOnce = 8
  /// `CONCOURSE_FAULTS`: "all", or the name of a scenario, of which all cases run. Otherwise each run takes another part
  /// of the cases.
  private let wanted = Process.environment("CONCOURSE_FAULTS")
  private let slices = 12
  private var children: [Child] = []
  private var failures = 0
  private var unmet = 0
  private var traps = 0
  private var ran = 0

  mutating func run() {
    let scenarios = FaultScenario.all.filter { wanted == nil || wanted == "all" || wanted == $0.name }
    let slice = time(nil) / 3_600 % slices
    let begun = time(nil)
    if wanted == nil { say("slice \(slice) of \(slices)") }
    for scenario in scenarios {
      guard let baseline = measure(scenario) else {
        say("FAULT in \(scenario.name) without a refusal")
        failures += 1
        continue
      }
      let refusals = baseline.refusals(of: scenario)
      let (before, start) = (ran, time(nil))
      for (index, refusal) in refusals.enumerated() where wanted != nil || index % slices == slice {
        while children.count == atOnce { awaitOne() }
        begin(Case(scenario: scenario, refusal: refusal, baseline: baseline))
      }
      while !children.isEmpty { awaitOne() }
      let made = baseline.counts.values.reduce(0, +)
      let cases = "\(ran - before) of \(refusals.count) cases of \(made) calls"
      say("\(scenario.name): \(cases), \(time(nil) - start) s")
    }
    let ends = "\(unmet) not reached, \(traps) allowed traps, \(failures) failures"
    say("\(ran) cases, \(ends), \(time(nil) - begun) s")
  }

  private func say(_ text: String) {
    print(text)
    fflush(nil)
  }

  private func measure(_ scenario: FaultScenario) -> FaultBaseline? {
    for _ in 0..<3 {
      let (process, output) = Self.fork { FaultBaseline.measure(scenario) }
      let text = Self.read(output, atMost: patience)
      let calls = text == nil ? Self.calls(of: process) : ""
      if text == nil { kill(process, SIGKILL) }
      let status = Self.end(of: process)
      if status == 0, let text, let baseline = FaultBaseline(text) { return baseline }
      say("\(scenario.name) without a refusal: status \(status), \(text ?? "hangs") \(calls)")
    }
    return nil
  }

  private mutating func begin(_ trial: Case) {
    let (process, output) = Self.fork { trial.baseline.check(trial.scenario, trial.refusal) }
    children.append(Child(process: process, output: output, begun: time(nil), trial: trial))
    ran += 1
  }

  /// Waits until a child has ended, or ends one that hangs.
  private mutating func awaitOne() {
    var questions = children.map { pollfd(fd: $0.output, events: Int16(POLLIN), revents: 0) }
    poll(&questions, nfds_t(questions.count), 1_000)
    for index in children.indices.reversed() {
      if questions[index].revents != 0 {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = Glibc.read(children[index].output, &buffer, buffer.count)
        if count > 0 {
          children[index].text += buffer[..<count]
          continue
        }
      } else if time(nil) - children[index].begun < patience {
        continue
      } else {
        children[index].calls = Self.calls(of: children[index].process)
        kill(children[index].process, SIGKILL)
      }
      judge(children.remove(at: index))
    }
  }

  private mutating func judge(_ child: Child) {
    close(child.output)
    let status = Self.end(of: child.process)
    let text = String(decoding: child.text, as: UTF8.self)
    let refusal = child.trial.refusal
    switch (status & 0x7F, status >> 8 & 0xFF) {
    case (0, 0): return
    case (0, 4):
      unmet += 1
      return
    case (SIGILL, _):
      if let trap = refusal.allowedTrap, text.contains(trap), text.contains("Concourse: BUG IN ") {
        traps += 1
        return
      }
    default: break
    }
    failures += 1
    let end = status & 0x7F == SIGKILL ? "hangs" : "ends with status \(status)"
    say("FAULT \(child.trial.scenario.name), \(refusal): \(end) \(child.calls)\(text)")
  }

  /// For each thread: its name, and the number and arguments of the system call that it is in.
  private static func calls(of process: pid_t) -> String {
    var calls = ""
    guard let threads = opendir("/proc/\(process)/task") else { return calls }
    defer { closedir(threads) }
    while let entry = readdir(threads) {
      // SAFETY: the entry is alive until the next call of `readdir`; the name is copied.
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard name.first != "." else { continue }
      for file in ["comm", "syscall"] {
        calls += text(of: "/proc/\(process)/task/\(name)/\(file)")
      }
    }
    return calls
  }

  /// Starts a child whose standard error can be read from the descriptor.
  private static func fork(_ body: () -> Never) -> (process: pid_t, output: Int32) {
    var ends: [Int32] = [0, 0]
    precondition(pipe(&ends) == 0)
    let process = forkProcess()
    if process == 0 {
      dup2(ends[1], STDERR_FILENO)
      for descriptor in 3..<Int32(256) { close(descriptor) }
      body()
    }
    close(ends[1])
    return (process, ends[0])
  }

  /// Reads until the child ends; nil if it does not within so many seconds.
  private static func read(_ output: Int32, atMost seconds: Int) -> String? {
    defer { close(output) }
    var text: [UInt8] = []
    let deadline = time(nil) + seconds
    while time(nil) < deadline {
      var question = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      guard poll(&question, 1, 1_000) > 0 else { continue }
      var buffer = [UInt8](repeating: 0, count: 4_096)
      let count = Glibc.read(output, &buffer, buffer.count)
      guard count > 0 else { return String(decoding: text, as: UTF8.self) }
      text += buffer[..<count]
    }
    return nil
  }

  private static func end(of process: pid_t) -> Int32 {
    var status: Int32 = -1
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return status
  }
}
