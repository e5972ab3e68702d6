// M. Rules common to all sources: birth, handlers, suspension.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("M. Sources")
  struct SourceTests {
    private let queue = DispatchQueue(label: "sources")
    private let key = DispatchSpecificKey<Int>()

    init() { queue.setSpecific(key: key, value: 1) }

    /// Whether the caller runs on the suite's queue.
    private func here(_ key: DispatchSpecificKey<Int>) -> Bool { DispatchQueue.getSpecific(key: key) == 1 }

    @Test("S94 a source is made inactive: no registration, no events before activation")
    func inactive() throws {
      try withPipe { pipe in
        let registered = DispatchSemaphore(value: 0)
        let early = Shared(0)
        let active = Shared(false)
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        source.setRegistrationHandler {
          if !active.value { early.increment() }
          registered.signal()
        }
        source.setEventHandler {
          if !active.value { early.increment() }
          pipe.receive()
          calls.record(1)
        }
        pipe.send()
        #expect(kernelHadItsTurn())
        active.set(true)
        source.activate()
        #expect(registered.comes())
        #expect(calls.comes())
        #expect(retire(source))
        #expect(early.value == 0)
      }
    }

    @Test("S29, S94 resuming an inactive source activates it; activating again does nothing")
    func resumeActivates() {
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler { calls.record(source.data) }
      source.resume()
      source.activate()
      source.activate()
      source.add(data: 1)
      #expect(calls.comes())
      #expect(retire(source))
    }

    @Test("S96 handlers run on the target queue")
    func onTheQueue() throws {
      try withPipe { pipe in
        let elsewhere = Shared(0)
        let done = DispatchGroup()
        for _ in 0..<3 { done.enter() }
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        let key = self.key
        source.setRegistrationHandler {
          if DispatchQueue.getSpecific(key: key) != 1 { elsewhere.increment() }
          done.leave()
        }
        source.setEventHandler {
          if DispatchQueue.getSpecific(key: key) != 1 { elsewhere.increment() }
          pipe.receive()
          source.cancel()
          done.leave()
        }
        source.setCancelHandler {
          if DispatchQueue.getSpecific(key: key) != 1 { elsewhere.increment() }
          done.leave()
        }
        source.activate()
        pipe.send()
        #expect(done.empties())
        #expect(elsewhere.value == 0)
      }
    }

    @Test("S26 the target may be changed before activation")
    func targetBeforeActivation() {
      let calls = Calls()
      let elsewhere = Shared(0)
      let source = DispatchSource.makeUserDataAddSource()
      let key = self.key
      source.setEventHandler {
        if DispatchQueue.getSpecific(key: key) != 1 { elsewhere.increment() }
        calls.record(source.data)
      }
      object(source).setTarget(queue: queue)
      source.activate()
      source.add(data: 1)
      #expect(calls.comes())
      #expect(retire(source))
      #expect(elsewhere.value == 0)
    }

    @Test("S96 one call at a time, on a concurrent queue and on a global queue too")
    func oneAtATime() {
      for target in [nil, .global(), DispatchQueue(label: "wide", attributes: .concurrent)] {
        let overlap = Overlap()
        let calls = Calls()
        let source = DispatchSource.makeUserDataAddSource(queue: target)
        source.setEventHandler {
          overlap.visit()
          calls.record(source.data)
        }
        source.activate()
        DispatchQueue.concurrentPerform(iterations: 4) { [source = object(source)] _ in
          for _ in 0..<1_000 { source.add(data: 1) }
        }
        #expect(calls.reaches(4_000))
        #expect(retire(source))
        #expect(overlap.peak == 1)
        #expect(calls.sum == 4_000)
      }
    }

    @Test("S96 events that arrive while the handler runs are merged into one call")
    func coalescing() {
      let started = DispatchSemaphore(value: 0)
      let proceed = DispatchSemaphore(value: 0)
      let inTime = Shared(false)
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler {
        let data = source.data
        if calls.count == 0 {
          started.signal()
          inTime.set(proceed.comes())
        }
        calls.record(data)
      }
      source.activate()
      source.add(data: 1)
      #expect(started.comes())
      for value: UInt in 2...6 { source.add(data: value) }
      proceed.signal()
      #expect(calls.comes())
      #expect(calls.comes())
      #expect(retire(source))
      #expect(inTime.value)
      #expect(calls.data == [1, 20])
    }

    @Test("S96 a suspended source delivers after as many resumes as suspends, in one call")
    func suspension() throws {
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler { calls.record(source.data) }
      source.activate()
      source.suspend()
      source.suspend()
      source.add(data: 1)
      source.add(data: 2)
      source.resume()
      #expect(kernelHadItsTurn())
      #expect(calls.count == 0)
      source.resume()
      #expect(calls.comes())
      #expect(retire(source))
      #expect(calls.data == [3])
    }

    @Test("S35, S96 a suspended target queue holds the events, its resume delivers them in one call")
    func suspendedTarget() throws {
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler { calls.record(source.data) }
      source.activate()
      source.add(data: 1)
      #expect(calls.comes())
      queue.suspend()
      for _ in 0..<5 { source.add(data: 2) }
      #expect(kernelHadItsTurn())
      #expect(calls.count == 1)
      queue.resume()
      #expect(calls.comes())
      #expect(retire(source))
      #expect(calls.data == [1, 10])
    }

    @Test("S96 suspend takes effect between calls, from inside the handler too")
    func suspendFromWithin() throws {
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler {
        if calls.count == 0 { source.suspend() }
        calls.record(source.data)
      }
      source.activate()
      source.add(data: 1)
      #expect(calls.comes())
      source.add(data: 2)
      #expect(kernelHadItsTurn())
      #expect(calls.count == 1)
      source.resume()
      #expect(calls.comes())
      #expect(retire(source))
      #expect(calls.data == [1, 2])
    }

    @Test("S97 without an event handler events are consumed and not replayed")
    func withoutHandler() throws {
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.activate()
      source.add(data: 1)
      queue.sync {}
      #expect(kernelHadItsTurn())
      source.setEventHandler { calls.record(source.data) }
      source.add(data: 2)
      #expect(calls.comes())
      #expect(retire(source))
      #expect(calls.data == [2])
    }

    @Test("S97 a handler replaced while suspended is the one used next")
    func replacedWhileSuspended() {
      let first = Calls()
      let second = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler { first.record(source.data) }
      source.activate()
      source.add(data: 1)
      #expect(first.comes())
      source.suspend()
      source.add(data: 2)
      source.setEventHandler { second.record(source.data) }
      source.resume()
      #expect(second.comes())
      #expect(retire(source))
      #expect(first.data == [1])
      #expect(second.data == [2])
    }

    @Test("S97 a handler replaced from the target queue is the one used next, and the old one is released")
    func replacedFromTheQueue() {
      let gone = DispatchSemaphore(value: 0)
      let first = Calls()
      let second = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler { [witness = Witness(gone: gone)] in
        witness.remember()
        first.record(source.data)
        source.setEventHandler { second.record(source.data) }
      }
      source.activate()
      source.add(data: 1)
      #expect(first.comes())
      #expect(gone.comes())
      source.add(data: 2)
      #expect(second.comes())
      #expect(retire(source))
      #expect(first.data == [1])
      #expect(second.data == [2])
    }

    @Test("S97 nil removes a handler, closure or work item")
    func handlerRemoved() throws {
      for asItem in [false, true] {
        let calls = Calls()
        let source = DispatchSource.makeUserDataAddSource(queue: queue)
        if asItem {
          source.setEventHandler(handler: DispatchWorkItem { calls.record(source.data) })
        } else {
          source.setEventHandler { calls.record(source.data) }
        }
        source.activate()
        source.add(data: 1)
        #expect(calls.comes())
        source.suspend()
        source.setEventHandler(handler: nil)
        source.resume()
        source.add(data: 2)
        #expect(kernelHadItsTurn())
        #expect(retire(source))
        #expect(calls.data == [1])
      }
    }

    @Test("handlers given as work items run, the event handler each time")
    func workItems() {
      let registered = DispatchSemaphore(value: 0)
      let cancelled = DispatchSemaphore(value: 0)
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setRegistrationHandler(handler: DispatchWorkItem { registered.signal() })
      source.setEventHandler(handler: DispatchWorkItem { calls.record(source.data) })
      source.setCancelHandler(handler: DispatchWorkItem { cancelled.signal() })
      source.activate()
      #expect(registered.comes())
      for value: UInt in 1...5 {
        source.add(data: value)
        #expect(calls.comes())
      }
      source.cancel()
      #expect(cancelled.comes())
      #expect(calls.data == [1, 2, 3, 4, 5])
    }

    @Test("handlers take a quality of service and flags")
    func qosAndFlags() {
      let registered = DispatchSemaphore(value: 0)
      let cancelled = DispatchSemaphore(value: 0)
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setRegistrationHandler(qos: .utility, flags: []) { registered.signal() }
      source.setEventHandler(qos: .userInitiated, flags: .enforceQoS) { calls.record(source.data) }
      source.setCancelHandler(qos: .background, flags: [.enforceQoS]) { cancelled.signal() }
      source.activate()
      #expect(registered.comes())
      source.add(data: 1)
      #expect(calls.comes())
      source.add(data: 1)
      #expect(calls.comes())
      source.cancel()
      #expect(cancelled.comes())
    }

    @Test("the mask and the handle of sources that have none are zero")
    func noHandle() {
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      #expect(source.handle == 0)
      #expect(source.mask == 0)
      source.activate()
      #expect(retire(source))
    }

    @Test("sources leave no descriptors behind")
    func descriptors() throws {
      #expect(kernelHadItsTurn())
      let before = openDescriptors()
      for _ in 0..<100 {
        try withPipe { pipe in
          let reader = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
          let writer = DispatchSource.makeWriteSource(fileDescriptor: pipe.far, queue: queue)
          let timer = DispatchSource.makeTimerSource(queue: queue)
          timer.schedule(deadline: .now() + .seconds(100))
          for source: any DispatchSourceProtocol in [reader, writer, timer] { source.activate() }
          for source: any DispatchSourceProtocol in [reader, writer, timer] { #expect(retire(source)) }
        }
      }
      // Other parts of the process may open a few meanwhile, but not one for each source.
      #expect(openDescriptors() < before + 20)
    }
  }
}
