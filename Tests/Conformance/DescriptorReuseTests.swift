// Descriptors whose numbers come back, and many at once: what brought implementations down.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("Descriptors that come and go")
  struct DescriptorReuseTests {
    private let queue = DispatchQueue(label: "reuse")

    /// Watches the near end until one event came; the cancel handler has run when this returns.
    private func oneEvent(_ ends: Ends) -> Bool {
      let calls = Calls()
      let source = DispatchSource.makeReadSource(fileDescriptor: ends.near, queue: queue)
      source.setEventHandler {
        ends.receive()
        calls.record(source.data)
      }
      source.activate()
      ends.send()
      let came = calls.comes()
      return retire(source) && came && calls.data == [1]
    }

    @Test("trap 2: a descriptor is watched again and again, cancelled in between")
    func sameDescriptor() throws {
      try withSockets { sockets in
        for _ in 0..<200 { #expect(oneEvent(sockets)) }
      }
      try withPipe { pipe in
        for _ in 0..<200 { #expect(oneEvent(pipe)) }
      }
    }

    @Test("trap 2: the number of a closed descriptor is watched again, also after a hang-up")
    func sameNumber() throws {
      let numbers = Shared(Set<Int32>())
      for round in 0..<200 {
        let body: (Ends) throws -> Void = { ends in
          numbers.change { $0.insert(ends.near) }
          #expect(oneEvent(ends))
          guard round % 2 == 0 else { return }
          // A second source sees the hang-up, then the number is free.
          let calls = Calls()
          let source = DispatchSource.makeReadSource(fileDescriptor: ends.near, queue: queue)
          source.setEventHandler { calls.record(source.data) }
          source.activate()
          ends.closeFar()
          #expect(calls.comes())
          #expect(retire(source))
          #expect(calls.data.first == 0)
        }
        if round % 3 == 0 { try withPipe(body) } else { try withSockets(body) }
      }
      // The kernel gives the lowest free number: the rounds shared them.
      #expect(numbers.value.count < 100)
    }

    @Test("trap 2: a new source before the cancel handler of the old one ran")
    func overlappingSources() throws {
      try withPipe { pipe in
        let done = DispatchGroup()
        for _ in 0..<100 {
          let calls = Calls()
          let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
          source.setEventHandler {
            if calls.count == 0 { pipe.receive() }
            calls.record(source.data)
            source.cancel()
          }
          done.enter()
          source.setCancelHandler { done.leave() }
          source.activate()
          pipe.send()
          // Straight after the event, with the cancellation still under way, the next round begins.
          #expect(calls.comes())
          #expect(calls.count == 1)
        }
        #expect(done.empties())
      }
    }

    @Test("trap 2: closed in the cancel handler and opened again by the same handler")
    func reopenedInTheCancelHandler() throws {
      let wrong = Shared(0)
      let finished = DispatchSemaphore(value: 0)
      func next(_ round: Int) {
        var pair: [Int32] = [-1, -1]
        guard round > 0, pipe(&pair) == 0 else {
          finished.signal()
          return
        }
        let ends = Ends(pair)
        let source = DispatchSource.makeReadSource(fileDescriptor: ends.near, queue: queue)
        source.setEventHandler {
          // A call without a byte would be an event of the descriptor that had this number before.
          if source.data != 1 || ends.receive() != 1 { wrong.increment() }
          source.cancel()
        }
        source.setCancelHandler {
          ends.closeNear()
          ends.closeFar()
          next(round - 1)
        }
        source.activate()
        ends.send()
      }
      next(200)
      #expect(finished.comes())
      #expect(wrong.value == 0)
    }

    @Test("trap 1: sources on copies of pipes, made, used and cancelled by several threads at once")
    func copies() throws {
      try withPipe { pipe in
        makeNonBlocking(pipe.near)
        let group = DispatchGroup()
        let failures = Shared(0)
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
          for _ in 0..<50 {
            let copy = dup(pipe.near)
            guard copy >= 0 else {
              failures.increment()
              continue
            }
            let calls = Shared(0)
            let source = DispatchSource.makeReadSource(
              fileDescriptor: copy, queue: thread == 0 ? queue : nil)
            source.setEventHandler {
              take(1, from: copy)
              calls.increment()
              if thread % 2 == 0 { source.cancel() }
            }
            group.enter()
            source.setCancelHandler {
              if close(copy) != 0 { failures.increment() }
              group.leave()
            }
            source.activate()
            pipe.send(2)
            if thread % 2 == 1 { source.cancel() }
          }
          // Enough for those that wait for an event still.
          pipe.send(200)
        }
        // Bytes were taken by sources that needed none: feed the rest until all had theirs.
        while group.wait(timeout: .now() + .milliseconds(1)) == .timedOut {
          makeNonBlocking(pipe.far)
          #expect(failures.value == 0)
          if !pipe.send(64) { break }
        }
        #expect(group.empties())
        #expect(failures.value == 0)
      }
    }

    @Test("trap 1: many pipes ready at the same moment: each source reports its own")
    func crowd() throws {
      let count = 60
      var pipes = [Ends]()
      defer {
        for pipe in pipes {
          pipe.closeNear()
          pipe.closeFar()
        }
      }
      for _ in 0..<count {
        var pair: [Int32] = [-1, -1]
        try #require(pipe(&pair) == 0)
        pipes.append(Ends(pair))
      }
      let seen = Shared([Int](repeating: 0, count: count))
      let wrong = Shared(0)
      let events = DispatchSemaphore(value: 0)
      let done = DispatchGroup()
      var sources = [any DispatchSourceRead]()
      for (index, pipe) in pipes.enumerated() {
        let source = DispatchSource.makeReadSource(
          fileDescriptor: pipe.near, queue: index % 2 == 0 ? queue : nil)
        source.setEventHandler {
          if source.handle != UInt(pipe.near) || pipe.receive(Int(source.data)) != index + 1 {
            wrong.increment()
          }
          seen.change { $0[index] += 1 }
          events.signal()
        }
        done.enter()
        source.setCancelHandler { done.leave() }
        source.activate()
        sources.append(source)
      }
      for (index, pipe) in pipes.enumerated() { pipe.send(index + 1) }
      for _ in 0..<count { #expect(events.comes()) }
      // Now half of them again, while the other half is cancelled.
      for index in 0..<count {
        if index % 2 == 0 { sources[index].cancel() } else { pipes[index].send(index + 1) }
      }
      for _ in 0..<count / 2 { #expect(events.comes()) }
      for source in sources { source.cancel() }
      #expect(done.empties())
      #expect(wrong.value == 0)
      #expect(seen.value == (0..<count).map { $0 % 2 == 0 ? 1 : 2 })
    }

    @Test("an echo over two sources brings back every byte in order")
    func echo() throws {
      try withSockets { sockets in
        let total = 20_000
        makeNonBlocking(sockets.near)
        makeNonBlocking(sockets.far)
        let server = DispatchSource.makeReadSource(fileDescriptor: sockets.near)
        server.setEventHandler {
          var buffer = [UInt8](repeating: 0, count: 4_096)
          let count = read(sockets.near, &buffer, buffer.count)
          if count > 0 { _ = write(sockets.near, buffer, count) }
        }
        let received = Shared([UInt8]())
        let complete = DispatchSemaphore(value: 0)
        let client = DispatchSource.makeReadSource(fileDescriptor: sockets.far, queue: queue)
        client.setEventHandler {
          var buffer = [UInt8](repeating: 0, count: 4_096)
          let count = read(sockets.far, &buffer, buffer.count)
          guard count > 0 else { return }
          received.change { $0 += buffer[0..<count] }
          if received.value.count >= total { complete.signal() }
        }
        server.activate()
        client.activate()
        let bytes = (0..<total).map { UInt8(truncatingIfNeeded: $0) }
        for start in stride(from: 0, to: total, by: 100) {
          let chunk = Array(bytes[start..<start + 100])
          #expect(write(sockets.far, chunk, 100) == 100)
        }
        #expect(complete.comes())
        #expect(retire(server))
        #expect(retire(client))
        #expect(received.value == bytes)
      }
    }
  }
}
