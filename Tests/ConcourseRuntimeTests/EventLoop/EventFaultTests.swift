import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// Scripted refusals on the events road: work goes on, and nothing spins or is lost.
  @Suite("Faults of the events road", .serialized)
  struct EventFaultTests {
    /// A pipe with a read source that counts the bytes it reads.
    private final class Reader: @unchecked Sendable {
      // SAFETY: constant but for `count`, which has its own lock.
      let reader: Int32
      let writer: Int32
      let source: any DispatchSourceRead
      let count = Shared(0)
      let progress = DispatchSemaphore(value: 0)
      let closed = DispatchSemaphore(value: 0)

      init() {
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0)
        (reader, writer) = (ends[0], ends[1])
        source = DispatchSource.makeReadSource(fileDescriptor: reader)
        let (descriptor, count, progress, closed) = (reader, count, progress, closed)
        source.setEventHandler {
          var bytes = [UInt8](repeating: 0, count: 64)
          let got = read(descriptor, &bytes, bytes.count)
          count.change { $0 += got }
          progress.signal()
        }
        source.setCancelHandler {
          close(descriptor)
          closed.signal()
        }
      }

      func send(_ bytes: Int) {
        let text = [UInt8](repeating: 7, count: bytes)
        precondition(write(writer, text, bytes) == bytes)
      }

      func end() {
        source.cancel()
        #expect(comes(closed))
        close(writer)
      }
    }

    @Test(
      "trap 6, 19: no room in the kernel's table: the descriptor is polled, and watched later",
      arguments: [ENOMEM, ENOSPC, EMFILE])
    func noRoom(failure: Int32) {
      defer { SystemScript.clear() }
      let pipe = Reader()
      SystemScript.refuse(.epollControl, with: failure, times: 3)
      pipe.source.activate()
      for round in 1...5 {
        pipe.send(3)
        #expect(comes(pipe.progress))
        #expect(pipe.count.value == 3 * round)
      }
      #expect(SystemScript.count(.epollControl) > 3, "the kernel was asked again")
      pipe.end()
    }

    @Test("trap 6, 19: a polled descriptor is reported although others keep coming")
    func crowd() {
      defer { SystemScript.clear() }
      let pipe = Reader()
      SystemScript.refuse(.epollControl, with: ENOMEM)
      pipe.source.activate()
      let isOver = Shared(false)
      let ended = DispatchSemaphore(value: 0)
      startThread {
        while !isOver.value {
          let other = Reader()
          other.source.activate()
          other.end()
        }
        ended.signal()
      }
      for round in 1...3 {
        pipe.send(3)
        #expect(comes(pipe.progress))
        #expect(pipe.count.value == 3 * round)
      }
      isOver.change { $0 = true }
      #expect(comes(ended))
      pipe.end()
    }

    @Test("trap 5: a pipe that a sandbox forbids to watch is polled")
    func refused() {
      defer { SystemScript.clear() }
      let pipe = Reader()
      SystemScript.refuse(.epollControl, with: EPERM, times: 2)
      pipe.send(4)
      pipe.source.activate()
      #expect(comes(pipe.progress))
      #expect(pipe.count.value == 4)
      pipe.end()
    }

    @Test(
      "trap 19: a descriptor that the kernel refuses to re-arm is polled", arguments: [1, 2, 3])
    func refusedAgain(times: Int) {
      defer { SystemScript.clear() }
      let pipe = Reader()
      pipe.source.activate()
      for round in 1...10 {
        SystemScript.refuse(.epollControl, with: ENOMEM, times: times)
        pipe.send(1)
        #expect(comes(pipe.progress))
        #expect(pipe.count.value == round)
      }
      pipe.end()
    }

    @Test("trap 6: a descriptor that is already closed is silent, and its source can be cancelled")
    func closedAlready() {
      let number = dup(0)
      close(number)
      let cancelled = DispatchSemaphore(value: 0)
      let source = DispatchSource.makeReadSource(fileDescriptor: number)
      source.setEventHandler { Issue.record("an event of a closed descriptor") }
      source.setCancelHandler { cancelled.signal() }
      source.activate()
      source.cancel()
      #expect(comes(cancelled))
    }

    @Test("EINTR: interrupted calls are repeated")
    func interrupted() {
      defer { SystemScript.clear() }
      let pipe = Reader()
      for call in [SystemCall.epollControl, .epollWait, .deviceControl, .poll] {
        SystemScript.refuse(call, with: EINTR, times: 5)
      }
      pipe.source.activate()
      for round in 1...5 {
        pipe.send(2)
        #expect(comes(pipe.progress))
        #expect(pipe.count.value == 2 * round)
      }
      pipe.end()
    }

    @Test("trap 4: after many false alarms without a handler call, data is reported")
    func falseAlarms() {
      defer { SystemScript.clear() }
      let pipe = Reader()
      // As if another reader had been faster a hundred times.
      SystemScript.refuse(.deviceControl, with: EAGAIN, times: 100)
      pipe.source.activate()
      pipe.send(5)
      #expect(comes(pipe.progress))
      #expect(pipe.count.value == 5)
      pipe.end()
    }

    @Test("trap 19: the kernel's timer cannot be set: the next change sets it")
    func timerRefused() {
      defer { SystemScript.clear() }
      SystemScript.refuse(.timerSet, with: ENOMEM, times: 1)
      let fired = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "timers")
      queue.asyncAfter(deadline: .now() + .milliseconds(20)) { fired.signal() }
      queue.asyncAfter(deadline: .now() + .milliseconds(1)) { fired.signal() }
      #expect(comes(fired))
      #expect(comes(fired))
    }

    @Test("trap 19: the kernel's timer cannot be set while timers are reported: the monitor sets it again")
    func timerRefusedAfterReport() {
      defer { SystemScript.clear() }
      let fired = DispatchSemaphore(value: 0)
      // The kernel's timer fires for the first, and is then refused for the others.
      for index in 1...3 {
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(100 * index)) { fired.signal() }
      }
      SystemScript.refuse(.timerSet, with: ENOMEM, times: 12)
      for _ in 1...3 { #expect(comes(fired)) }
    }

    @Test(
      "S112, trap 19: no descriptor for signals: they are counted, and the counts are polled",
      .enabled(if: !Sanitizer.isThread))
    func noSignalDescriptor() async {
      await #expect(processExitsWith: .success) {
        SystemScript.refuse(.eventCreate, with: EMFILE)
        let source = DispatchSource.makeSignalSource(signal: SIGUSR2)
        let arrived = DispatchSemaphore(value: 0)
        source.setEventHandler { arrived.signal() }
        source.activate()
        // Without the engine's handler this would end the process.
        kill(getpid(), SIGUSR2)
        precondition(comes(arrived))
        // Descriptors are available again.
        SystemScript.clear()
        kill(getpid(), SIGUSR2)
        precondition(comes(arrived))
        source.cancel()
      }
    }

    @Test(
      "S113 a signal that every thread of the program blocks reaches its source",
      .enabled(if: !Sanitizer.isThread))
    func blockedEverywhere() async {
      await #expect(processExitsWith: .success) {
        // Pool threads block the signal anyway. The mask of Swift Testing's sleeping main thread cannot be set from
        // here, so a forked child with one thread blocks it.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGUSR1)
        let child = inForkedChild {
          // The only thread of the child.
          pthread_sigmask(SIG_BLOCK, &signals, nil)
          let arrived = DispatchSemaphore(value: 0)
          let source = DispatchSource.makeSignalSource(signal: SIGUSR1)
          source.setEventHandler { arrived.signal() }
          source.activate()
          kill(getpid(), SIGUSR1)
          _exit(comes(arrived) ? 0 : 1)
        }
        precondition(child == 0)
      }
    }

    // The thread sanitizer does not allow threads in a forked child.
    @Test(
      "S112 a signal that arrives while its first source is activated is not lost",
      .enabled(if: !Sanitizer.isThread))
    func signalDuringActivation() async {
      await #expect(processExitsWith: .success) {
        // Each child has a first source. Its thread sends the signal as soon as the disposition changes, and a little
        // later in each round.
        for round in 0..<200 {
          let child = inForkedChild {
            signal(SIGUSR2, SIG_IGN)
            unblock(SIGUSR2)
            let isReady = DispatchSemaphore(value: 0)
            startThread {
              isReady.signal()
              var present = sigaction()
              repeat { sigaction(SIGUSR2, nil, &present) } while present.isIgnored
              let start = DispatchTime.now().uptimeNanoseconds
              while DispatchTime.now().uptimeNanoseconds - start < UInt64(round % 50) * 500 {}
              kill(getpid(), SIGUSR2)
            }
            isReady.wait()
            let arrived = DispatchSemaphore(value: 0)
            let source = DispatchSource.makeSignalSource(signal: SIGUSR2)
            source.setEventHandler { arrived.signal() }
            source.activate()
            _exit(comes(arrived) ? 0 : 1)
          }
          precondition(child == 0, "round \(round)")
        }
      }
    }

    @Test("trap 19: no descriptors at all: pipes, timers and cancel handlers go on")
    func noDescriptors() async {
      await #expect(processExitsWith: .success) {
        for call in [SystemCall.epollCreate, .timerCreate, .eventCreate] {
          SystemScript.refuse(call, with: EMFILE)
        }
        let pipe = Reader()
        pipe.source.activate()
        for round in 1...3 {
          pipe.send(1)
          precondition(comes(pipe.progress))
          precondition(pipe.count.value == round)
        }
        // Descriptors are available again, so the kernel takes over.
        SystemScript.clear()
        for round in 4...6 {
          pipe.send(1)
          precondition(comes(pipe.progress))
          precondition(pipe.count.value == round)
        }
        let fired = DispatchSemaphore(value: 0)
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(2)) { fired.signal() }
        precondition(comes(fired))
        pipe.end()
      }
    }
  }
}

extension sigaction {
  fileprivate var isIgnored: Bool {
    // SAFETY: SIG_IGN is the number 1 in the place of a function; it is compared and never called.
    unsafeBitCast(__sigaction_handler.sa_handler, to: UInt.self) == 1
  }
}
