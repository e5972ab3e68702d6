// P. DispatchIO: operations on channels.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("P. Channels: reading and writing")
  struct IOTests {
    private let queue = DispatchQueue(label: "channels")

    @Test("S123 stream operations run one after another, at the file position, ignoring offsets")
    func stream() throws {
      try withFile(counting(100)) { file, _ in
        try #require(lseek(file, 10, SEEK_SET) == 10)
        withChannel(.stream, file, on: queue) { channel in
          let operations = (0..<5).map { channel.read(offset: off_t(50 * $0), length: 8, on: queue) }
          for (index, operation) in operations.enumerated() {
            #expect(operation.ends())
            #expect(operation.isWellFormed)
            #expect(operation.error == 0)
            let expected = (0..<8).map { UInt8(10 + 8 * index + $0) }
            #expect(operation.bytes == expected)
          }
        }
      }
    }

    @Test("S123 the streams of one direction come in the order of their submission")
    func streamOrder() throws {
      try withPipe { pipe in
        withChannel(.stream, pipe.near, on: queue) { reading in
          withChannel(.stream, pipe.far, on: queue) { writing in
            let reads = (0..<20).map { _ in reading.read(length: 100, on: queue) }
            let writes = (0..<20).map {
              writing.write([UInt8](repeating: UInt8($0), count: 100), on: queue)
            }
            for (index, operation) in reads.enumerated() {
              #expect(operation.ends())
              #expect(operation.bytes == [UInt8](repeating: UInt8(index), count: 100))
            }
            for operation in writes {
              #expect(operation.ends())
              #expect(operation.error == 0)
            }
          }
        }
      }
    }

    @Test("S123 random operations use the offset relative to the position at creation")
    func random() throws {
      try withFile(counting(100)) { file, path in
        try #require(lseek(file, 10, SEEK_SET) == 10)
        withChannel(.random, file, on: queue) { channel in
          let operations = [40, 0, 20].map { channel.read(offset: off_t($0), length: 5, on: queue) }
          for (start, operation) in zip([50, 10, 30], operations) {
            #expect(operation.ends())
            #expect(operation.isWellFormed)
            #expect(operation.bytes == (0..<5).map { UInt8(start + $0) })
          }
          let writing = channel.write(offset: 2, [201, 202], on: queue)
          #expect(writing.ends())
          #expect(writing.isWellFormed)
          #expect(writing.error == 0)
        }
        #expect(Array(contents(of: path)[11..<15]) == [11, 201, 202, 14])
        #expect(lseek(file, 0, SEEK_CUR) == 10)
      }
    }

    @Test("S124 an operation's handler runs under the given queue, never concurrently with itself")
    func handlers() throws {
      let key = DispatchSpecificKey<Int>()
      for attributes: DispatchQueue.Attributes in [[], .concurrent] {
        let target = DispatchQueue(label: "handlers", attributes: attributes)
        target.setSpecific(key: key, value: 1)
        let elsewhere = Shared(0)
        let operation = Operation()
        try withFile(counting(100_000)) { file, _ in
          withChannel(.stream, file, on: queue) { channel in
            channel.setLimit(highWater: 1_000)
            channel.read(offset: 0, length: 100_000, queue: target) { done, data, error in
              if DispatchQueue.getSpecific(key: key) != 1 { elsewhere.increment() }
              operation.record(done, data, error)
            }
            #expect(operation.ends())
          }
        }
        #expect(operation.isWellFormed)
        #expect(operation.pieces.count >= 100)
        #expect(operation.bytes == counting(100_000))
        #expect(elsewhere.value == 0)
      }
    }

    @Test("S125 a read that ends at the end of a file: done, no error, empty data")
    func endOfFile() throws {
      try withFile(counting(10)) { file, _ in
        for type: DispatchIO.StreamType in [.random, .stream] {
          withChannel(type, file, on: queue) { channel in
            let operation = channel.read(length: 100, on: queue)
            #expect(operation.ends())
            #expect(operation.isWellFormed)
            #expect(operation.error == 0)
            #expect(operation.bytes == counting(10))
            #expect(operation.steps.last?.bytes == [])
          }
        }
      }
      try withPipe { pipe in
        pipe.send(3)
        pipe.closeFar()
        withChannel(.stream, pipe.near, on: queue) { channel in
          for expected in [counting(3), []] {
            let operation = channel.read(length: .max, on: queue)
            #expect(operation.ends())
            #expect(operation.isWellFormed)
            #expect(operation.error == 0)
            #expect(operation.bytes == expected)
            #expect(operation.steps.last?.bytes == [])
          }
        }
      }
    }

    @Test("S125 a failed read: done, the errno and no data; a failed write: the unwritten rest")
    func failures() throws {
      try withFile(counting(10)) { _, path in
        let writeOnly = open(path, O_WRONLY)
        try #require(writeOnly >= 0)
        withChannel(.stream, writeOnly, on: queue) { channel in
          let operation = channel.read(length: 5, on: queue)
          #expect(operation.ends())
          #expect(operation.isWellFormed)
          #expect(operation.error == EBADF)
          #expect(operation.steps.last?.bytes == nil)
        }
        close(writeOnly)
        let readOnly = open(path, O_RDONLY)
        try #require(readOnly >= 0)
        withChannel(.stream, readOnly, on: queue) { channel in
          let operation = channel.write([1, 2, 3], on: queue)
          #expect(operation.ends())
          #expect(operation.isWellFormed)
          #expect(operation.error == EBADF)
          #expect(operation.steps.last?.bytes == [1, 2, 3])
        }
        close(readOnly)
      }
    }

    @Test("S125 a write that succeeds ends with done, no error and no data")
    func success() throws {
      try withFile { file, path in
        withChannel(.stream, file, on: queue) { channel in
          for count in [1, 100, 70_000] {
            let operation = channel.write(counting(count), on: queue)
            #expect(operation.ends())
            #expect(operation.isWellFormed)
            #expect(operation.error == 0)
            #expect(operation.steps.last?.bytes == nil)
          }
        }
        #expect(contents(of: path) == counting(1) + counting(100) + counting(70_000))
      }
    }

    @Test("a read of nothing and a write of nothing are done at once")
    func nothing() throws {
      try withFile(counting(10)) { file, path in
        withChannel(.stream, file, on: queue) { channel in
          let reading = channel.read(length: 0, on: queue)
          #expect(reading.ends())
          #expect(reading.isWellFormed)
          #expect(reading.error == 0)
          #expect(reading.bytes == [])
          let writing = channel.write([], on: queue)
          #expect(writing.ends())
          #expect(writing.isWellFormed)
          #expect(writing.error == 0)
        }
        #expect(contents(of: path) == counting(10))
      }
    }

    @Test("S126 no delivery is larger than high water")
    func highWater() throws {
      try withFile(counting(10_000)) { file, _ in
        withChannel(.stream, file, on: queue) { channel in
          channel.setLimit(highWater: 1_024)
          let operation = channel.read(length: .max, on: queue)
          #expect(operation.ends())
          #expect(operation.isWellFormed)
          #expect(operation.bytes == counting(10_000))
          #expect(operation.pieces.allSatisfy { $0.count <= 1_024 })
        }
      }
    }

    @Test("S126 equal marks give equal pieces")
    func equalMarks() throws {
      try withFile(counting(10_000)) { file, _ in
        withChannel(.random, file, on: queue) { channel in
          channel.setLimit(lowWater: 3_000)
          channel.setLimit(highWater: 3_000)
          let operation = channel.read(length: 10_000, on: queue)
          #expect(operation.ends())
          #expect(operation.isWellFormed)
          #expect(operation.bytes == counting(10_000))
          #expect(operation.pieces.map(\.count) == [3_000, 3_000, 3_000, 1_000])
        }
      }
    }

    @Test("S126 nothing smaller than low water is delivered before the end")
    func lowWater() throws {
      try withPipe { pipe in
        withChannel(.stream, pipe.near, on: queue) { channel in
          channel.setLimit(lowWater: 4)
          let operation = channel.read(length: 10, on: queue)
          pipe.send(3)
          #expect(kernelHadItsTurn())
          #expect(operation.steps.isEmpty)
          pipe.send(2)
          #expect(operation.steps(1))
          #expect(operation.bytes == [0, 1, 2, 0, 1])
          pipe.send(1)
          pipe.closeFar()
          #expect(operation.ends())
          #expect(operation.isWellFormed)
          #expect(operation.bytes == [0, 1, 2, 0, 1, 0])
        }
      }
    }

    @Test("S126 low water of one delivers as the bytes come")
    func lowWaterOfOne() throws {
      try withSockets { sockets in
        withChannel(.stream, sockets.near, on: queue) { channel in
          channel.setLimit(lowWater: 1)
          let operation = channel.read(length: 3, on: queue)
          for count in 1...3 {
            sockets.send(1)
            #expect(operation.steps(count))
          }
          #expect(operation.ends())
          #expect(operation.isWellFormed)
          #expect(operation.bytes == [0, 0, 0])
        }
      }
    }

    @Test("S126 maximal low water suppresses intermediate deliveries")
    func maximalLowWater() throws {
      try withFile(counting(1_400_000)) { file, _ in
        withChannel(.stream, file, on: queue) { channel in
          channel.setLimit(lowWater: .max)
          let operation = channel.read(length: 1_300_000, on: queue)
          #expect(operation.ends())
          #expect(operation.isWellFormed)
          #expect(operation.pieces.count == 1)
          #expect(operation.bytes == counting(1_300_000))
        }
      }
    }

    @Test("S127 with a strict interval the handler is called every interval, with nothing to deliver too")
    func strictInterval() throws {
      try withPipe { pipe in
        withChannel(.stream, pipe.near, on: queue) { channel in
          channel.setInterval(interval: .milliseconds(2), flags: .strictInterval)
          let operation = channel.read(length: 100, on: queue)
          #expect(operation.steps(3))
          #expect(operation.bytes.isEmpty)
          pipe.send(2)
          while operation.bytes.isEmpty {
            guard operation.steps(operation.steps.count + 1) else { break }
          }
          #expect(operation.bytes == [0, 1])
          pipe.closeFar()
          #expect(operation.ends())
          #expect(operation.isWellFormed)
        }
      }
    }

    @Test("S127 without the strict flag an interval delivers only what reached low water")
    func interval() throws {
      try withPipe { pipe in
        withChannel(.stream, pipe.near, on: queue) { channel in
          channel.setLimit(lowWater: 3)
          channel.setInterval(interval: .milliseconds(1))
          let operation = channel.read(length: 100, on: queue)
          pipe.send(2)
          pass(.now() + .milliseconds(20))
          #expect(kernelHadItsTurn())
          #expect(operation.steps.isEmpty)
          pipe.send(2)
          #expect(operation.steps(1))
          #expect(operation.bytes == [0, 1, 0, 1])
          pipe.closeFar()
          #expect(operation.ends())
          #expect(operation.isWellFormed)
        }
      }
    }

    @Test("trap 17: reading and writing at once on one socket do not hang")
    func bothDirections() throws {
      try withSockets { sockets in
        let bytes = counting(400_000)
        try withChannel(.stream, sockets.near, on: queue) { near in
          try withChannel(.stream, sockets.far, on: queue) { far in
            let reads = [near, far].map { $0.read(length: bytes.count, on: queue) }
            let writes = [near, far].map { $0.write(bytes, on: .global()) }
            for operation in reads + writes {
              try #require(operation.ends())
              #expect(operation.isWellFormed)
              #expect(operation.error == 0)
            }
            for operation in reads { #expect(operation.bytes == bytes) }
          }
        }
      }
    }

    #if CONCOURSE
      // Incumbent: a write that waits for space in a pipe does not learn that the reader left.
      @Test("S134 a write to a pipe whose reader leaves fails with EPIPE and returns the rest")
      func brokenPipe() throws {
        let before = signal(SIGPIPE, SIG_IGN)
        defer { signal(SIGPIPE, before) }
        try withPipe { pipe in
          withChannel(.stream, pipe.far, on: queue) { channel in
            // More than a pipe holds: a part is written, the rest waits.
            let operation = channel.write(counting(200_000), on: queue)
            #expect(pipe.receive() == 1)
            #expect(kernelHadItsTurn())
            pipe.closeNear()
            #expect(operation.ends())
            #expect(operation.error == EPIPE)
            let rest = operation.steps.last?.bytes ?? []
            #expect(rest.count < 200_000 && rest.count > 100_000)
            #expect(rest == Array(counting(200_000).suffix(rest.count)))
          }
        }
      }
    #endif

    @Test("devices are read and written through channels")
    func devices() throws {
      let null = open("/dev/null", O_RDWR)
      try #require(null >= 0)
      withChannel(.stream, null, on: queue) { channel in
        let reading = channel.read(length: 100, on: queue)
        #expect(reading.ends())
        #expect(reading.error == 0)
        #expect(reading.bytes.isEmpty)
        let writing = channel.write(counting(100_000), on: queue)
        #expect(writing.ends())
        #expect(writing.error == 0)
      }
      close(null)
      let zero = open("/dev/zero", O_RDONLY)
      try #require(zero >= 0)
      withChannel(.stream, zero, on: queue) { channel in
        let reading = channel.read(length: 10_000, on: queue)
        #expect(reading.ends())
        #expect(reading.bytes == [UInt8](repeating: 0, count: 10_000))
      }
      close(zero)
    }
  }
}
