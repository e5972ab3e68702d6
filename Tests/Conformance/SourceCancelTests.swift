// M. Rules common to all sources: registration, cancellation, release.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("M. Registration and cancellation")
  struct SourceCancelTests {
    private let queue = DispatchQueue(label: "cancellation")

    @Test("S98 the registration handler runs once, before any event")
    func registrationFirst() throws {
      try withPipe { pipe in
        let order = Shared([String]())
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        source.setRegistrationHandler { order.change { $0.append("registered") } }
        source.setEventHandler {
          pipe.receive()
          order.change { $0.append("event") }
          calls.record(1)
        }
        pipe.send(3)
        source.activate()
        for _ in 0..<3 { #expect(calls.comes()) }
        source.suspend()
        source.resume()
        pipe.send()
        #expect(calls.comes())
        #expect(retire(source))
        #expect(order.value == ["registered", "event", "event", "event", "event"])
      }
    }

    @Test("S98 a registration handler set after registration runs promptly")
    func lateRegistration() throws {
      try withPipe { pipe in
        let first = DispatchSemaphore(value: 0)
        let second = DispatchSemaphore(value: 0)
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        source.setRegistrationHandler { first.signal() }
        source.activate()
        #expect(first.comes())
        source.setRegistrationHandler { second.signal() }
        #expect(second.comes())
        #expect(retire(source))
      }
    }

    @Test("S98 cancelled first, the registration handler never runs")
    func registrationCancelled() throws {
      let ran = Shared(false)
      let done = DispatchSemaphore(value: 0)
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setRegistrationHandler { ran.set(true) }
      source.setCancelHandler { done.signal() }
      source.cancel()
      source.activate()
      #expect(done.comes())
      #expect(kernelHadItsTurn())
      #expect(!ran.value)
    }

    @Test("S99 the running handler finishes, then the cancel handler runs, once")
    func runningHandler() throws {
      for target in [queue, DispatchQueue(label: "wide", attributes: .concurrent)] {
        let started = DispatchSemaphore(value: 0)
        let proceed = DispatchSemaphore(value: 0)
        let cancelled = DispatchSemaphore(value: 0)
        let order = Shared([String]())
        let source = DispatchSource.makeUserDataAddSource(queue: target)
        source.setEventHandler {
          started.signal()
          let inTime = proceed.comes()
          order.change { $0.append(inTime ? "event" : "late") }
        }
        source.setCancelHandler {
          order.change { $0.append("cancelled") }
          cancelled.signal()
        }
        source.activate()
        source.add(data: 1)
        #expect(started.comes())
        source.add(data: 1)
        source.cancel()
        source.cancel()
        #expect(source.isCancelled)
        #expect(kernelHadItsTurn())
        #expect(order.value.isEmpty)
        proceed.signal()
        #expect(cancelled.comes())
        #expect(kernelHadItsTurn())
        source.cancel()
        #expect(othersHadTheirTurn())
        #expect(order.value == ["event", "cancelled"])
      }
    }

    @Test("S99 a source cancelled from its own event handler")
    func fromTheHandler() throws {
      try withPipe { pipe in
        let order = Shared([String]())
        let cancelled = DispatchSemaphore(value: 0)
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        source.setEventHandler {
          source.cancel()
          order.change { $0.append("event") }
        }
        source.setCancelHandler {
          order.change { $0.append("cancelled") }
          cancelled.signal()
        }
        source.activate()
        // Nothing reads these: only the cancellation stops the calls.
        pipe.send(10)
        #expect(cancelled.comes())
        #expect(kernelHadItsTurn())
        #expect(order.value == ["event", "cancelled"])
      }
    }

    @Test("S99 a source cancelled from its own registration handler")
    func fromTheRegistrationHandler() throws {
      try withPipe { pipe in
        let order = Shared([String]())
        let cancelled = DispatchSemaphore(value: 0)
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        source.setRegistrationHandler {
          source.cancel()
          order.change { $0.append("registered") }
        }
        source.setEventHandler { order.change { $0.append("event") } }
        source.setCancelHandler {
          order.change { $0.append("cancelled") }
          cancelled.signal()
        }
        pipe.send()
        source.activate()
        #expect(cancelled.comes())
        #expect(kernelHadItsTurn())
        #expect(order.value == ["registered", "cancelled"])
      }
    }

    @Test("S99 many threads that cancel at once bring one cancel handler")
    func cancelRace() {
      for _ in 0..<100 {
        let count = Shared(0)
        let done = DispatchSemaphore(value: 0)
        let source = DispatchSource.makeUserDataAddSource()
        source.setCancelHandler {
          count.increment()
          done.signal()
        }
        source.activate()
        DispatchQueue.concurrentPerform(iterations: 4) { [source = object(source)] _ in source.cancel() }
        #expect(done.comes())
        #expect(othersHadTheirTurnBriefly())
        #expect(count.value == 1)
      }
    }

    private func othersHadTheirTurnBriefly() -> Bool {
      let done = DispatchGroup()
      for _ in 0..<4 { DispatchQueue.global().async(group: done) {} }
      return done.empties()
    }

    @Test("S100 cancelled before activation: the cancel handler alone, and only once activated")
    func beforeActivation() throws {
      try withPipe { pipe in
        let order = Shared([String]())
        let cancelled = DispatchSemaphore(value: 0)
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        source.setRegistrationHandler { order.change { $0.append("registered") } }
        source.setEventHandler { order.change { $0.append("event") } }
        source.setCancelHandler {
          order.change { $0.append("cancelled") }
          cancelled.signal()
        }
        pipe.send()
        source.cancel()
        #expect(source.isCancelled)
        #expect(kernelHadItsTurn())
        #expect(order.value.isEmpty)
        source.activate()
        #expect(cancelled.comes())
        #expect(kernelHadItsTurn())
        #expect(order.value == ["cancelled"])
      }
    }

    @Test("S100 cancelled while suspended: the cancel handler alone, and only after the resume")
    func whileSuspended() throws {
      let order = Shared([String]())
      let cancelled = DispatchSemaphore(value: 0)
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler { order.change { $0.append("event") } }
      source.setCancelHandler {
        order.change { $0.append("cancelled") }
        cancelled.signal()
      }
      source.activate()
      source.suspend()
      source.add(data: 1)
      source.cancel()
      #expect(kernelHadItsTurn())
      #expect(order.value.isEmpty)
      source.resume()
      #expect(cancelled.comes())
      #expect(kernelHadItsTurn())
      #expect(order.value == ["cancelled"])
    }

    @Test("S101 releasing the last reference of an active source stops it without its cancel handler")
    func lastRelease() throws {
      try withPipe { pipe in
        let ran = Shared([String]())
        let gone = DispatchSemaphore(value: 0)
        let registered = DispatchSemaphore(value: 0)
        do {
          let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
          source.setRegistrationHandler { registered.signal() }
          source.setEventHandler { [witness = Witness(gone: gone)] in
            witness.remember()
            ran.change { $0.append("event") }
          }
          source.setCancelHandler { ran.change { $0.append("cancelled") } }
          source.activate()
          #expect(registered.comes())
        }
        #expect(gone.comes())
        pipe.send()
        #expect(kernelHadItsTurn())
        #expect(ran.value == [])
      }
    }

    @Test("S101 sources of every kind may be dropped while they fire")
    func droppedWhileFiring() throws {
      let gone = DispatchSemaphore(value: 0)
      for round in 0..<60 {
        try withPipe { pipe in
          let source: any DispatchSourceProtocol
          switch round % 3 {
          case 0:
            let timer = DispatchSource.makeTimerSource(queue: queue)
            timer.schedule(deadline: .now(), repeating: .microseconds(50))
            source = timer
          case 1:
            let adding = DispatchSource.makeUserDataAddSource(queue: queue)
            adding.add(data: 1)
            source = adding
          default:
            source = DispatchSource.makeWriteSource(fileDescriptor: pipe.far, queue: queue)
          }
          let fired = DispatchSemaphore(value: 0)
          source.setEventHandler { [witness = Witness(gone: gone)] in
            witness.remember()
            fired.signal()
          }
          source.activate()
          #expect(fired.comes())
        }
      }
      for _ in 0..<60 { #expect(gone.comes()) }
    }

    @Test("S101 cancellation releases the handlers, breaking cycles through the source")
    func cycles() throws {
      try withPipe { pipe in
        let gone = DispatchSemaphore(value: 0)
        let cancelled = DispatchSemaphore(value: 0)
        do {
          let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
          source.setRegistrationHandler { [witness = Witness(gone: gone)] in
            witness.remember()
            _ = source.handle
          }
          source.setEventHandler { [witness = Witness(gone: gone)] in
            witness.remember()
            _ = source.data
          }
          source.setCancelHandler { [witness = Witness(gone: gone)] in
            witness.remember()
            _ = source.isCancelled
            cancelled.signal()
          }
          source.activate()
          source.cancel()
        }
        #expect(cancelled.comes())
        for _ in 0..<3 { #expect(gone.comes()) }
      }
    }

    @Test("S101 a source that cancels itself is kept until its cancel handler ran")
    func keptForCancelHandler() throws {
      for _ in 0..<20 {
        let cancelled = DispatchSemaphore(value: 0)
        do {
          let source = DispatchSource.makeUserDataAddSource(queue: queue)
          source.setCancelHandler { cancelled.signal() }
          source.activate()
          source.cancel()
        }
        #expect(cancelled.comes())
      }
    }

    @Test("S103 isCancelled is true from the call on, and the mask is zero afterwards")
    func observable() throws {
      try withPipe { pipe in
        let insideCancelHandler = Shared((cancelled: false, mask: UInt(1), handle: UInt(0)))
        let cancelled = DispatchSemaphore(value: 0)
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        #expect(source.handle == UInt(pipe.near))
        #expect(!source.isCancelled)
        source.setCancelHandler {
          insideCancelHandler.set((source.isCancelled, source.mask, source.handle))
          cancelled.signal()
        }
        source.activate()
        #expect(!source.isCancelled)
        source.cancel()
        #expect(source.isCancelled)
        #expect(cancelled.comes())
        #expect(insideCancelHandler.value.cancelled)
        #expect(insideCancelHandler.value.mask == 0)
        #expect(insideCancelHandler.value.handle == UInt(pipe.near))
        #expect(source.mask == 0)
      }
    }

    @Test("S104, trap 6: a descriptor closed before activation registers, never fires and can be cancelled")
    func closedDescriptor() throws {
      // A number so high that no other code gets it meanwhile.
      let descriptor = fcntl(0, F_DUPFD, 700)
      try #require(descriptor >= 700)
      close(descriptor)
      let registered = DispatchSemaphore(value: 0)
      let calls = Calls()
      let sources: [any DispatchSourceProtocol] = [
        DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue),
        DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: queue),
      ]
      for source in sources {
        source.setRegistrationHandler { registered.signal() }
        source.setEventHandler { calls.record(1) }
        source.activate()
        #expect(registered.comes())
      }
      #expect(kernelHadItsTurn())
      for source in sources { #expect(retire(source)) }
      #expect(calls.count == 0)
    }

    @Test("S104 the descriptor may be closed in the cancel handler, and is free for others at once")
    func closedInTheCancelHandler() throws {
      for _ in 0..<50 {
        var pair: [Int32] = [-1, -1]
        try #require(pipe(&pair) == 0)
        let (near, far) = (pair[0], pair[1])
        let closed = DispatchSemaphore(value: 0)
        let failed = Shared(false)
        let source = DispatchSource.makeReadSource(fileDescriptor: near, queue: queue)
        source.setEventHandler { source.cancel() }
        source.setCancelHandler {
          failed.set(close(near) != 0)
          closed.signal()
        }
        source.activate()
        _ = write(far, [1], 1)
        #expect(closed.comes())
        #expect(!failed.value)
        close(far)
      }
    }
  }
}
