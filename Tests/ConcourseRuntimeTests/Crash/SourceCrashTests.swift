import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Crash {
  @Suite("Misuse of sources")
  struct SourceCrashTests {
    @Test("S95 a read source of descriptor -1, and a write source")
    func descriptor() async {
      let read = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeReadSource(fileDescriptor: -1)
      }
      read.says("a read source was made for descriptor -1, which is negative")
      let write = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeWriteSource(fileDescriptor: -2)
      }
      write.says("a write source was made for descriptor -2, which is negative")
    }

    @Test("S95 a number that is not a signal, and a signal that cannot be observed")
    func signals() async {
      let zero = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeSignalSource(signal: 0)
      }
      zero.says("a signal source was made for signal 0, which cannot be observed")
      let beyond = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeSignalSource(signal: 65)
      }
      beyond.says("a signal source was made for signal 65, which cannot be observed")
      let kill = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeSignalSource(signal: SIGKILL)
      }
      kill.says("a signal source was made for signal 9, which cannot be observed")
    }

    @Test("S95 undefined timer flags")
    func timerFlags() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeTimerSource(flags: .init(rawValue: 6))
      }
      end.says("makeTimerSource(flags:) with unknown bits 0x6")
    }

    @Test("S93 invalid intervals and leeways")
    func intervals() async {
      let negative = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchSource.makeTimerSource().schedule(deadline: .now(), repeating: .milliseconds(-1))
      }
      negative.says("schedule(…) with the interval milliseconds(-1): it must not be negative or NaN")
      let nan = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchSource.makeTimerSource().schedule(wallDeadline: .now(), repeating: .nan)
      }
      nan.says("schedule(…) with the interval nan s: it must not be negative or NaN")
      let leeway = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchSource.makeTimerSource().schedule(deadline: .now(), leeway: .seconds(-3))
      }
      leeway.says("schedule(…) with the leeway seconds(-3): it must not be negative")
    }

    @Test("S91, S107 setting a source that is not a timer, and merging into a source that takes no data")
    func wrongKind() async {
      let timer = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let source = DispatchSource.makeUserDataAddSource()
        (source as! DispatchSource).schedule(deadline: .now())
      }
      timer.says("schedule(…) on the user data add source, which is not a timer")
      let data = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let source = DispatchSource.makeUserDataAddSource()
        (source as! DispatchSource).or(data: 1)
      }
      data.says("data for a user data or source was merged into the user data add source")
    }

    @Test("S29 more resumes than suspends")
    func overResume() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let source = DispatchSource.makeReadSource(fileDescriptor: 0)
        source.resume()
        source.resume()
      }
      end.says(
        "resume() on the read source of descriptor 0, which is not suspended: more resumes than suspends")
    }

    @Test("S100 the last reference to an inactive or suspended source")
    func dropped() async {
      let inactive = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeTimerSource()
      }
      inactive.says("was released while it was inactive; activate it first")
      let suspended = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let source = DispatchSource.makeSignalSource(signal: SIGUSR2)
        source.activate()
        source.suspend()
      }
      suspended.says("the signal source of signal 12 was released while it was suspended; resume it first")
    }

    @Test("S148 activation in a forked child, which has no threads", .enabled(if: !Sanitizer.isThread))
    func forked() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        let source = DispatchSource.makeTimerSource()
        source.schedule(deadline: .now())
        let threads = DispatchSemaphore(value: 0)
        DispatchQueue.global().async { threads.signal() }
        precondition(comes(threads))
        let status = inForkedChild { source.activate() }
        // SIGILL, without a core's bit.
        precondition(status & 0x7f == SIGILL)
        source.activate()
        source.cancel()
      }
      end.says("activating a source in a forked child process, which has no worker threads")
    }

    @Test(
      "S113 a fault ends the process although its signal has a source",
      .enabled(if: !Sanitizer.isOn, "sanitizers report faults themselves"))
    func fault() async {
      await #expect(processExitsWith: .signal(SIGSEGV)) {
        let page = mmap(nil, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
        observeFaults(of: SIGSEGV)
        page.storeBytes(of: 1, as: UInt8.self)
      }
      let trap = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        observeFaults(of: SIGILL)
        _ = DispatchSource.makeSignalSource(signal: 0)
      }
      trap.says("a signal source was made for signal 0, which cannot be observed")
    }

    @Test(
      "S113 a fault that the previous handler passes back to the runtime's ends the process",
      .enabled(if: !Sanitizer.isOn, "sanitizers report faults themselves"))
    func faultPassedBack() async {
      await #expect(processExitsWith: .signal(SIGSEGV)) {
        let page = mmap(nil, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
        observeFaults(of: SIGSEGV)
        var chaining = sigaction()
        chaining.__sigaction_handler.sa_sigaction = { signal, information, context in
          replaced.__sigaction_handler.sa_sigaction(signal, information, context)
        }
        chaining.sa_flags = SA_SIGINFO
        sigaction(SIGSEGV, &chaining, &replaced)
        observeFaults(of: SIGSEGV, keepsHandler: true)
        page.storeBytes(of: 1, as: UInt8.self)
      }
    }

    @Test("S113 children that the program does not wait for leave nothing, with a source for SIGCHLD, too")
    func unawaitedChildren() async {
      await #expect(processExitsWith: .success) {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = SIG_DFL
        action.sa_flags = SA_NOCLDWAIT
        sigaction(SIGCHLD, &action, nil)
        observeFaults(of: SIGCHLD, keepsHandler: true)
        var child: pid_t = 0
        let name = strdup("true")
        defer { free(name) }
        precondition(posix_spawnp(&child, "true", nil, nil, [name, nil], environ) == 0)
        // Returns when the child has ended.
        precondition(waitpid(child, nil, 0) == -1 && errno == ECHILD)
      }
    }

    #if arch(x86_64)
      @Test(
        "S113 a breakpoint ends the process although SIGTRAP has a source",
        .enabled(if: !Sanitizer.isOn, "sanitizers report faults themselves"))
      func breakpoint() async {
        await #expect(processExitsWith: .signal(SIGTRAP)) {
          let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
          // int3, ret.
          page.storeBytes(of: (0xCC, 0xC3), as: (UInt8, UInt8).self)
          mprotect(page, 4096, PROT_READ | PROT_EXEC)
          observeFaults(of: SIGTRAP)
          // SAFETY: the page has the code of such a function, and stays.
          unsafeBitCast(page, to: (@convention(c) () -> Void).self)()
        }
      }
    #endif

    @Test("a client's type that conforms to the source protocol")
    func foreign() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        struct Foreign: DispatchSourceProtocol {}
        Foreign().cancel()
      }
      end.says("Foreign conforms to DispatchSourceProtocol; only DispatchSource can")
    }
  }
}

// SAFETY: set before the signal comes.
nonisolated(unsafe) private var replaced = sigaction()

/// Makes a source for a signal that had its default action, unless its handler is kept. If a handler returns from the
/// fault for ever, SIGALRM ends the process.
private func observeFaults(of number: Int32, keepsHandler: Bool = false) {
  if !keepsHandler { signal(number, SIG_DFL) }
  let registered = DispatchSemaphore(value: 0)
  let source = DispatchSource.makeSignalSource(signal: number)
  source.setEventHandler {}
  source.setRegistrationHandler { registered.signal() }
  source.activate()
  precondition(comes(registered))
  // The handler stays.
  source.cancel()
  alarm(60)
}
