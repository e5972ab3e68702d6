// N. Signal sources.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("N. Signal sources", .enabled(if: signalHandlersRun))
  struct SignalSourceTests {
    private let queue = DispatchQueue(label: "signals")

    /// An active source that records its data, registered when this returns.
    private func source(_ signal: Int32, _ calls: Calls) -> any DispatchSourceSignal {
      let registered = DispatchSemaphore(value: 0)
      let source = DispatchSource.makeSignalSource(signal: signal, queue: queue)
      source.setRegistrationHandler { registered.signal() }
      source.setEventHandler { calls.record(source.data) }
      source.activate()
      #expect(registered.comes())
      return source
    }

    @Test("S112 a signal source is called for each signal sent after the last one arrived")
    func delivery() {
      let calls = Calls()
      let source = source(SIGUSR1, calls)
      #expect(source.handle == UInt(SIGUSR1))
      for _ in 0..<20 {
        #expect(kill(getpid(), SIGUSR1) == 0)
        #expect(calls.comes())
      }
      #expect(kernelHadItsTurn())
      #expect(retire(source))
      #expect(calls.data == Array(repeating: 1, count: 20))
    }

    @Test("S112 every source for a signal is called, and no other")
    func severalSources() {
      let calls = [Calls(), Calls(), Calls()]
      let other = Calls()
      let sources = calls.map { source(SIGUSR1, $0) }
      let otherSource = source(SIGUSR2, other)
      #expect(kill(getpid(), SIGUSR1) == 0)
      for calls in calls { #expect(calls.comes()) }
      #expect(retire(sources[0]))
      #expect(kill(getpid(), SIGUSR1) == 0)
      for calls in calls.dropFirst() { #expect(calls.comes()) }
      #expect(kernelHadItsTurn())
      for source in sources.dropFirst() { #expect(retire(source)) }
      #expect(other.count == 0)
      #expect(kill(getpid(), SIGUSR2) == 0)
      #expect(other.comes())
      #expect(retire(otherSource))
      #expect(calls.map(\.count) == [1, 2, 2])
    }

    @Test("S112 signals during a suspension are merged into one call")
    func suspension() {
      let calls = Calls()
      let observed = Calls()
      let suspended = source(SIGUSR1, calls)
      let observer = source(SIGUSR1, observed)
      suspended.suspend()
      for _ in 0..<3 {
        #expect(kill(getpid(), SIGUSR1) == 0)
        #expect(observed.comes())
      }
      #expect(calls.count == 0)
      suspended.resume()
      #expect(calls.comes())
      #expect(kernelHadItsTurn())
      #expect(retire(suspended))
      #expect(retire(observer))
      #if CONCOURSE || OVERLAY
        #expect(calls.data == [3])
      #else
        // Incumbent: each call reports 1, however many arrived.
        #expect(calls.data == [1])
      #endif
    }

    @Test("S112, trap 11: a signal sent to one thread arrives once")
    func toOneThread() {
      let calls = Calls()
      let source = source(SIGUSR2, calls)
      // Tests run on threads of a pool, which block signals.
      var set = sigset_t()
      var before = sigset_t()
      sigemptyset(&set)
      sigaddset(&set, SIGUSR2)
      pthread_sigmask(SIG_UNBLOCK, &set, &before)
      for _ in 0..<5 {
        #expect(pthread_kill(pthread_self(), SIGUSR2) == 0)
        #expect(calls.comes())
      }
      pthread_sigmask(SIG_SETMASK, &before, nil)
      #expect(kernelHadItsTurn())
      #expect(retire(source))
      #expect(calls.sum == 5)
    }

    @Test("S112 a storm of signals is merged, not multiplied, and the last one is not lost")
    func storm() {
      let calls = Calls()
      let source = source(SIGUSR1, calls)
      for _ in 0..<200 { #expect(kill(getpid(), SIGUSR1) == 0) }
      #expect(calls.comes())
      #expect(kernelHadItsTurn())
      let stormed = calls.sum
      #expect(stormed >= 1 && stormed <= 200)
      #expect(kill(getpid(), SIGUSR1) == 0)
      #expect(calls.reaches(stormed + 1))
      #expect(retire(source))
    }

    @Test("S113 a signal that is ignored by default reaches its source")
    func ignoredByDefault() {
      let calls = Calls()
      let source = source(SIGWINCH, calls)
      #expect(kill(getpid(), SIGWINCH) == 0)
      #expect(calls.comes())
      #expect(retire(source))
    }

    #if CONCOURSE
      // Incumbent: only the first source for a signal undoes what the program had set.
      @Test("S113 a signal that the program ignored before reaches its source")
      func ignoredBefore() {
        let before = signal(SIGUSR1, SIG_IGN)
        defer { signal(SIGUSR1, before) }
        let calls = Calls()
        let source = source(SIGUSR1, calls)
        #expect(kill(getpid(), SIGUSR1) == 0)
        #expect(calls.comes())
        #expect(retire(source))
      }
    #endif

    @Test("S113 ignoring a signal afterwards silences its source")
    func ignoredAfterwards() {
      let calls = Calls()
      let source = source(SIGUSR1, calls)
      let before = signal(SIGUSR1, SIG_IGN)
      #expect(kill(getpid(), SIGUSR1) == 0)
      #expect(kernelHadItsTurn())
      #expect(calls.count == 0)
      signal(SIGUSR1, before)
      #expect(kill(getpid(), SIGUSR1) == 0)
      #expect(calls.comes())
      #expect(retire(source))
      #expect(calls.data == [1])
    }

    @Test("S99 after cancel signals bring no calls, and a new source works")
    func cancelled() {
      let calls = Calls()
      let first = source(SIGUSR1, calls)
      #expect(retire(first))
      // Without a source the program's disposition of the signal applies.
      let before = signal(SIGUSR1, SIG_IGN)
      #expect(kill(getpid(), SIGUSR1) == 0)
      #expect(kernelHadItsTurn())
      #expect(calls.count == 0)
      signal(SIGUSR1, before)
      let second = source(SIGUSR1, calls)
      #expect(kill(getpid(), SIGUSR1) == 0)
      #expect(calls.comes())
      #expect(retire(second))
      #expect(calls.data == [1])
    }

    @Test("S104 signal sources made and cancelled again and again")
    func again() {
      for _ in 0..<50 {
        let calls = Calls()
        let source = source(SIGWINCH, calls)
        #expect(kill(getpid(), SIGWINCH) == 0)
        #expect(calls.comes())
        #expect(retire(source))
      }
    }
  }
}
