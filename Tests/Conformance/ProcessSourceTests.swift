// N. Process sources, which the incumbent lacks on Linux.

#if CONCOURSE

  import ConcourseEvents
  import Glibc
  import Testing

  extension Conformance {
    @Suite("N. Process sources")
    struct ProcessSourceTests {
      private let queue = DispatchQueue(label: "processes")

      /// Starts a shell command whose standard input is this descriptor.
      private func shell(_ command: String, input: Int32 = 0) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        try #require(posix_spawn_file_actions_init(&actions) == 0)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if input != 0 { posix_spawn_file_actions_adddup2(&actions, input, 0) }
        let words = ["sh", "-c", command]
        let arguments: [UnsafeMutablePointer<CChar>?] = words.map { word in strdup(word) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        try #require(posix_spawn(&process, "/bin/sh", &actions, nil, arguments, environ) == 0)
        return process
      }

      /// Starts a shell that waits until its input ends, and then exits with this status.
      private func waiting(on pipe: Ends, status: Int = 0) throws -> pid_t {
        // The child must not hold the writing end itself, or its input would never end.
        _ = fcntl(pipe.far, F_SETFD, FD_CLOEXEC)
        return try shell("read line; exit \(status)", input: pipe.near)
      }

      /// What is recorded of the calls of a process source's handler.
      private func source(
        _ process: pid_t, _ mask: DispatchSource.ProcessEvent, _ events: Calls
      ) -> any DispatchSourceProcess {
        let source = DispatchSource.makeProcessSource(identifier: process, eventMask: mask, queue: queue)
        source.setEventHandler { events.record(source.data.rawValue) }
        return source
      }

      @Test("S114 the exit of a child is reported once, when the child can be reaped")
      func exit() throws {
        try withPipe { pipe in
          let process = try waiting(on: pipe, status: 3)
          let reaped = Shared((pid: pid_t(-1), status: Int32(0)))
          let events = Calls()
          let source = DispatchSource.makeProcessSource(
            identifier: process, eventMask: .exit, queue: queue)
          #expect(source.handle == process)
          #expect(source.mask == .exit)
          source.setEventHandler {
            var status: Int32 = 0
            let pid = waitpid(process, &status, WNOHANG)
            if events.count == 0 { reaped.set((pid, status)) }
            events.record(source.data.rawValue)
          }
          source.activate()
          #expect(kernelHadItsTurn())
          #expect(events.count == 0)
          pipe.closeFar()
          #expect(events.comes())
          #expect(kernelHadItsTurn())
          #expect(retire(source))
          #expect(reaped.value.pid == process)
          #expect(reaped.value.status == 3 << 8)
          #expect(events.data == [DispatchSource.ProcessEvent.exit.rawValue])
        }
      }

      @Test("S114, trap 10: a child that exited before the source was made is reported")
      func exitedBefore() throws {
        let process = try shell("exit 0")
        var information = siginfo_t()
        // Waits for the exit, and leaves the child to be reaped.
        try #require(waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) == 0)
        let events = Calls()
        let source = source(process, .exit, events)
        source.activate()
        #expect(events.comes())
        #expect(retire(source))
        #expect(waitpid(process, nil, WNOHANG) == process)
        #expect(events.data == [DispatchSource.ProcessEvent.exit.rawValue])
      }

      @Test("S114, trap 10: a child that was reaped before the source was made is reported as gone")
      func reapedBefore() throws {
        let process = try shell("exit 0")
        try #require(waitpid(process, nil, 0) == process)
        let events = Calls()
        let source = source(process, .exit, events)
        source.activate()
        #expect(events.comes())
        #expect(retire(source))
        #expect(events.data == [DispatchSource.ProcessEvent.exit.rawValue])
      }

      @Test("S114, trap 10: an exit during a suspension, or before the handler is set, is not lost")
      func suspended() throws {
        try withPipe { pipe in
          let process = try waiting(on: pipe)
          let events = Calls()
          let source = source(process, .exit, events)
          source.activate()
          source.suspend()
          pipe.closeFar()
          try #require(waitpid(process, nil, 0) == process)
          #expect(kernelHadItsTurn())
          #expect(events.count == 0)
          source.resume()
          #expect(events.comes())
          #expect(retire(source))
        }
      }

      @Test("S114 several sources on one process all report, a cancelled one does not")
      func several() throws {
        try withPipe { pipe in
          let process = try waiting(on: pipe)
          let events = [Calls(), Calls(), Calls()]
          let sources = events.map { source(process, .exit, $0) }
          for source in sources { source.activate() }
          #expect(retire(sources[0]))
          #expect(sources[0].mask.rawValue == 0)
          pipe.closeFar()
          for events in events.dropFirst() { #expect(events.comes()) }
          for source in sources.dropFirst() { #expect(retire(source)) }
          #expect(events.map(\.count) == [0, 1, 1])
          #expect(waitpid(process, nil, 0) == process)
        }
      }

      @Test("S114 the exit of a process killed by a signal")
      func killed() throws {
        try withPipe { pipe in
          let process = try waiting(on: pipe)
          let events = Calls()
          let source = source(process, .exit, events)
          source.activate()
          #expect(kill(process, SIGKILL) == 0)
          #expect(events.comes())
          #expect(retire(source))
          var status: Int32 = 0
          #expect(waitpid(process, &status, WNOHANG) == process)
          #expect(status & 0x7f == SIGKILL)
        }
      }

      @Test("S114 many children at once, each reported to its own source, no descriptor left behind")
      func many() throws {
        let before = openDescriptors()
        try withPipe { pipe in
          let processes = try (0..<20).map { _ in try waiting(on: pipe) }
          let done = DispatchGroup()
          let wrong = Shared(0)
          for process in processes {
            let source = DispatchSource.makeProcessSource(
              identifier: process, eventMask: .exit, queue: queue)
            source.setEventHandler {
              if waitpid(process, nil, WNOHANG) != process { wrong.increment() }
              source.cancel()
            }
            done.enter()
            source.setCancelHandler { done.leave() }
            source.activate()
          }
          pipe.closeFar()
          #expect(done.empties())
          #expect(wrong.value == 0)
        }
        #expect(openDescriptors() < before + 10)
      }

      @Test("S114 the bits of process events")
      func bits() {
        typealias Event = DispatchSource.ProcessEvent
        #expect(Event.exit.rawValue == 0x8000_0000)
        #expect(Event.fork.rawValue == 0x4000_0000)
        #expect(Event.exec.rawValue == 0x2000_0000)
        #expect(Event.signal.rawValue == 0x0800_0000)
        #expect(Event.all == [.exit, .fork, .exec, .signal])
      }
    }
  }

#endif
