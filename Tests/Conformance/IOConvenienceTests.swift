// P. DispatchIO: reads and writes without a channel.

import Glibc
import Synchronization
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

/// How many SIGPIPEs came; a signal handler can capture nothing.
private let brokenPipes = Atomic<Int>(0)

extension Conformance {
  @Suite("P. DispatchIO without a channel")
  struct IOConvenienceTests {
    private let queue = DispatchQueue(label: "conveniences")

    private func read(_ descriptor: Int32, _ limit: Int) -> Operation {
      let operation = Operation()
      DispatchIO.read(fromFileDescriptor: descriptor, maxLength: limit, runningHandlerOn: queue) {
        operation.record(true, $0, $1)
      }
      return operation
    }

    private func write(_ descriptor: Int32, _ bytes: [UInt8]) -> Operation {
      let operation = Operation()
      DispatchIO.write(toFileDescriptor: descriptor, data: data(bytes), runningHandlerOn: queue) {
        operation.record(true, $0, $1)
      }
      return operation
    }

    /// The handler is called once, with these bytes.
    private func expect(_ operation: Operation, _ bytes: [UInt8]?, error: Int32 = 0) {
      #expect(operation.ends())
      #expect(operation.steps.count == 1)
      #expect(operation.steps.first?.bytes == bytes)
      #expect(operation.error == error)
    }

    @Test("S122 a read delivers what is available, up to the limit")
    func available() throws {
      try withPipe { pipe in
        pipe.send(5)
        expect(read(pipe.near, 3), [0, 1, 2])
        expect(read(pipe.near, 100), [3, 4])
      }
    }

    @Test("S122 a read waits for the first byte")
    func firstByte() throws {
      try withSockets { sockets in
        let operation = read(sockets.near, 100)
        #expect(kernelHadItsTurn())
        #expect(operation.steps.isEmpty)
        sockets.send(2)
        expect(operation, [0, 1])
      }
    }

    @Test("S122 empty data without an error means end of file")
    func endOfFile() throws {
      try withPipe { pipe in
        pipe.send(1)
        pipe.closeFar()
        expect(read(pipe.near, 10), [0])
        expect(read(pipe.near, 10), [])
        expect(read(pipe.near, 10), [])
      }
      let null = open("/dev/null", O_RDWR)
      try #require(null >= 0)
      expect(read(null, 10), [])
      close(null)
    }

    @Test("S122 files are read from their position, and written there")
    func files() throws {
      try withFile(counting(10)) { file, path in
        expect(read(file, 4), [0, 1, 2, 3])
        expect(read(file, .max), [4, 5, 6, 7, 8, 9])
        expect(read(file, .max), [])
        expect(write(file, [9, 9]), nil)
        #expect(contents(of: path) == counting(10) + [9, 9])
      }
    }

    @Test("S122, trap 17: a write that succeeds says so, with no data and no error")
    func written() throws {
      try withPipe { pipe in
        expect(write(pipe.far, [7, 8]), nil)
        #expect(pipe.receive(10) == 2)
      }
      let null = open("/dev/null", O_RDWR)
      try #require(null >= 0)
      expect(write(null, counting(100_000)), nil)
      close(null)
    }

    @Test("S122 a write larger than a pipe holds goes on as it is emptied")
    func largeWrite() throws {
      try withPipe { pipe in
        let bytes = counting(300_000)
        let operation = write(pipe.far, bytes)
        var received = [UInt8]()
        while received.count < bytes.count {
          let part = Operation()
          DispatchIO.read(fromFileDescriptor: pipe.near, maxLength: 50_000, runningHandlerOn: queue) {
            part.record(true, $0, $1)
          }
          guard part.ends(), !part.bytes.isEmpty else { break }
          received += part.bytes
        }
        expect(operation, nil)
        #expect(received == bytes)
      }
    }

    @Test("S122 data of several regions is written in order")
    func regions() throws {
      try withFile { file, path in
        let done = Operation()
        let several = data(regions: [[1, 2], [3], [], [4, 5, 6]])
        DispatchIO.write(toFileDescriptor: file, data: several, runningHandlerOn: queue) {
          done.record(true, $0, $1)
        }
        expect(done, nil)
        #expect(contents(of: path) == [1, 2, 3, 4, 5, 6])
      }
    }

    @Test("trap 17: a bad descriptor is an error, of reads and of writes")
    func badDescriptor() {
      let reading = read(-1, 10)
      #expect(reading.ends())
      #expect(reading.error == EBADF)
      #expect(reading.bytes.isEmpty)
      let writing = write(-1, [1, 2])
      #expect(writing.ends())
      #expect(writing.error == EBADF)
      #if CONCOURSE
        // Incumbent: gives no data back.
        #expect(writing.bytes == [1, 2])
      #endif
    }

    @Test("S134 writing to a pipe without readers fails with EPIPE and returns the data, SIGPIPE ignored")
    func ignoredBrokenPipe() throws {
      let before = signal(SIGPIPE, SIG_IGN)
      defer { signal(SIGPIPE, before) }
      try withPipe { pipe in
        pipe.closeNear()
        expect(write(pipe.far, [1, 2, 3]), [1, 2, 3], error: EPIPE)
      }
      try withSockets { sockets in
        sockets.closeNear()
        expect(write(sockets.far, [1, 2, 3]), [1, 2, 3], error: EPIPE)
      }
    }

    @Test("S134 writing to a pipe without readers raises SIGPIPE")
    func raisedBrokenPipe() throws {
      let count = brokenPipes.load(ordering: .relaxed)
      let before = signal(SIGPIPE) { _ in brokenPipes.add(1, ordering: .relaxed) }
      defer { signal(SIGPIPE, before) }
      try withPipe { pipe in
        pipe.closeNear()
        expect(write(pipe.far, [1, 2, 3]), [1, 2, 3], error: EPIPE)
      }
      #expect(brokenPipes.load(ordering: .relaxed) == count + 1)
    }

    @Test("S133 the descriptor is as it was when the handler runs")
    func flagsRestored() throws {
      for nonBlocking in [false, true] {
        try withPipe { pipe in
          if nonBlocking { makeNonBlocking(pipe.near) }
          pipe.send(1)
          expect(read(pipe.near, 1), [0])
          // The descriptor is given back just before or just after the handler runs.
          for _ in 0..<100 where isNonBlocking(pipe.near) != nonBlocking { #expect(othersHadTheirTurn()) }
          #expect(isNonBlocking(pipe.near) == nonBlocking)
        }
      }
    }

    @Test("trap 17: reads and writes on many pipes at once")
    func atOnce() throws {
      let done = DispatchGroup()
      let wrong = Shared(0)
      var pipes = [Ends]()
      defer {
        for pipe in pipes {
          pipe.closeNear()
          pipe.closeFar()
        }
      }
      for index in 0..<30 {
        var pair: [Int32] = [-1, -1]
        try #require(pipe(&pair) == 0)
        let ends = Ends(pair)
        pipes.append(ends)
        done.enter()
        DispatchIO.read(fromFileDescriptor: ends.near, maxLength: 100, runningHandlerOn: queue) {
          if Array($0) != [UInt8(index)] || $1 != 0 { wrong.increment() }
          done.leave()
        }
      }
      for (index, ends) in pipes.enumerated() {
        done.enter()
        DispatchIO.write(toFileDescriptor: ends.far, data: data([UInt8(index)]), runningHandlerOn: .global())
        {
          if $0 != nil || $1 != 0 { wrong.increment() }
          done.leave()
        }
      }
      #expect(done.empties())
      #expect(wrong.value == 0)
    }
  }
}
