import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// Every test with each way of reading and writing files.
  @Suite("DispatchIO on files")
  struct FileIOTests {
    static let policies = [FilePolicy.automatic, .ring, .threads]

    @Test(
      "S125, S126 a file from its start to its end, in pieces of at least the low-water mark",
      arguments: policies)
    func whole(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let bytes = pattern(3_000_000)
        let file = TemporaryFile(bytes)
        let channel = TestChannel(.stream, file.descriptor)
        let calls = channel.read()
        #expect(calls.finished().last == Call(true, []))
        #expect(calls.bytes == bytes)
        #expect(calls.all.dropLast(2).allSatisfy { $0.bytes!.count >= 1 << 20 && !$0.done })
        #expect(channel.read().finished() == [Call(true, [])])
        channel.end()
        #expect(channel.io.fileDescriptor == -1)
      }
    }

    @Test("S125 a file in memory is read without the ring, which would only copy it on another thread")
    func memory() {
      defer { SystemScript.clear() }
      let requests = Tally()
      SystemScript.redirect(.ringEnter) { call in
        requests.add()
        return call()
      }
      let bytes = pattern(3_000_000)
      let file = memoryFile()
      defer { close(file) }
      #expect(write(file, bytes, bytes.count) == bytes.count)
      #expect(lseek(file, 0, SEEK_SET) == 0)
      let channel = TestChannel(.stream, file)
      let calls = channel.read()
      #expect(calls.finished().last == Call(true, []))
      #expect(calls.bytes == bytes)
      channel.end()
      #expect(requests.value == 0)
    }

    @Test("S123, S126 lengths, marks and the file's position", arguments: policies)
    func lengths(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let bytes = pattern(1000)
        let file = TemporaryFile(bytes)
        let channel = TestChannel(.stream, file.descriptor)
        #expect(channel.read(300, at: 77).finished() == [Call(true, Array(bytes[0..<300]))])
        channel.io.setLimit(highWater: 100)
        #expect(
          channel.read(250).finished() == [
            Call(false, Array(bytes[300..<400])), Call(false, Array(bytes[400..<500])),
            Call(true, Array(bytes[500..<550])),
          ])
        channel.io.setLimit(highWater: -1)
        channel.io.setLimit(lowWater: .max)
        #expect(channel.read().finished() == [Call(false, Array(bytes[550...])), Call(true, [])])
        #expect(channel.read(0).finished() == [Call(true, [])])
        channel.end()
        #expect(lseek(file.descriptor, 0, SEEK_CUR) == 1000)
      }
    }

    @Test("trap 17: a write that succeeds reports it, and all bytes are in the file", arguments: policies)
    func writing(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let file = TemporaryFile()
        let channel = TestChannel(.stream, file.descriptor)
        #expect(channel.write(pattern(1000)).finished() == [Call(true, nil)])
        let large = pattern(6_000_000)
        #expect(channel.write(large).finished().last == Call(true, nil))
        #expect(channel.write([]).finished() == [Call(true, nil)])
        channel.io.setLimit(highWater: 1000)
        let pieces = channel.write(pattern(2500)).finished()
        #expect(
          pieces == [
            Call(false, Array(pattern(2500)[1000...])), Call(false, Array(pattern(2500)[2000...])),
            Call(true, nil),
          ])
        channel.end()
        #expect(file.bytes == pattern(1000) + large + pattern(2500))
      }
    }

    @Test("S125 a write that only begins to fit fails, and returns the rest", arguments: policies)
    func partialWrite(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        // As on a full disk: F_ADD_SEALS and F_SEAL_GROW keep the file at a page.
        let file = memoryFile(isSealable: true)
        defer { close(file) }
        #expect(ftruncate(file, 4096) == 0 && fcntl(file, 1033, 4) == 0)
        let bytes = pattern(10_000)
        let channel = TestChannel(.stream, file)
        let rest = Array(bytes[4096...])
        #expect(channel.write(bytes).finished() == [Call(true, rest, EPERM)])
        channel.end()
        #expect(lseek(file, 0, SEEK_CUR) == 4096)
        var written = [UInt8](repeating: 0, count: bytes.count)
        #expect(pread(file, &written, written.count, 0) == 4096)
        #expect(written.prefix(4096) == bytes.prefix(4096))
      }
    }

    @Test("S125 an append that only begins to fit leaves the position behind what was written")
    func partialAppend() async {
      await #expect(processExitsWith: .success) {
        // The most that a file may have; a write that ends there is cut.
        var limit = rlimit(rlim_cur: 4096, rlim_max: 4096)
        #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
        signal(SIGXFSZ, SIG_IGN)
        for policy in FileIOTests.policies {
          FilePolicy.with(policy) {
            let file = memoryFile()
            defer { close(file) }
            #expect(ftruncate(file, 1000) == 0 && fcntl(file, F_SETFL, O_APPEND) == 0)
            let bytes = pattern(10_000)
            let channel = TestChannel(.stream, file)
            let rest = Array(bytes[3096...])
            #expect(channel.write(bytes).finished() == [Call(true, rest, EFBIG)])
            channel.end()
            #expect(lseek(file, 0, SEEK_CUR) == 4096)
          }
        }
      }
    }

    @Test("data of many regions is written in order", arguments: policies)
    func regions(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let file = TemporaryFile()
        let channel = TestChannel(.random, file.descriptor)
        var whole = DispatchData.empty
        for number in 0..<200 { whole.append(bytesData([UInt8](repeating: UInt8(number), count: 5000))) }
        let calls = Calls()
        channel.io.write(offset: 10, data: whole, queue: calls.queue, ioHandler: calls.handler)
        #expect(calls.finished().last == Call(true, nil))
        channel.end()
        #expect(file.bytes == [UInt8](repeating: 0, count: 10) + Array(whole))
      }
    }

    @Test(
      "S123 offsets of random operations count from the position at the channel's creation",
      arguments: policies)
    func random(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let bytes = pattern(1000)
        let file = TemporaryFile(bytes)
        lseek(file.descriptor, 100, SEEK_SET)
        let channel = TestChannel(.random, file.descriptor)
        let reads = (0..<40).map { channel.read(20, at: $0 * 20) }
        for (number, read) in reads.enumerated() {
          #expect(read.finished() == [Call(true, Array(bytes[(100 + number * 20)...].prefix(20)))])
        }
        #expect(channel.read(100, at: 850).finished() == [Call(false, Array(bytes[950...])), Call(true, [])])
        #expect(channel.read(10, at: 5000).finished() == [Call(true, [])])
        #expect(channel.read(10, at: -50).finished() == [Call(true, Array(bytes[50..<60]))])
        #expect(channel.read(10, at: -101).finished() == [Call(true, nil, EINVAL)])
        #expect(channel.read(10, at: .max).finished() == [Call(true, nil, EINVAL)])
        #expect(channel.write([9], at: 4000).finished() == [Call(true, nil)])
        channel.end()
        #expect(lseek(file.descriptor, 0, SEEK_CUR) == 100)
        #expect(file.bytes.count == 4101)
      }
    }

    @Test("many operations under way at once, more than the ring has room for", arguments: policies)
    func many(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let size = 8192
        let files = (0..<12).map { number in
          TemporaryFile([UInt8](repeating: UInt8(number), count: size * 20))
        }
        let channels = files.map { TestChannel(.random, $0.descriptor) }
        let group = DispatchGroup()
        let wrong = Tally()
        let count = Sanitizer.shrunk(100)
        for round in 0..<count {
          for (number, channel) in channels.enumerated() {
            group.enter()
            let got = Tally()
            channel.io.read(offset: off_t(round % 19 * size), length: size, queue: .global()) {
              done, data, error in
              if error != 0 || data?.contains(where: { $0 != UInt8(number) }) != false { wrong.add() }
              got.add(data?.count ?? 0)
              guard done else { return }
              if got.value != size { wrong.add() }
              group.leave()
            }
          }
        }
        #expect(empties(group))
        #expect(wrong.value == 0)
        for channel in channels { channel.end() }
      }
    }

    @Test(
      "a handler that is slower than the file gets all bytes, and throttles the reading", arguments: policies
    )
    func slowHandler(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let megabytes = 48
        let file = TemporaryFile()
        #expect(ftruncate(file.descriptor, megabytes << 20) == 0)
        let queue = DispatchQueue(label: "slow")
        queue.suspend()
        let channel = TestChannel(.stream, file.descriptor)
        let (received, ended) = (Tally(), DispatchSemaphore(value: 0))
        channel.io.read(offset: 0, length: .max, queue: queue) { done, data, _ in
          received.add(data?.count ?? 0)
          if done { ended.signal() }
        }
        // The file's position shows the progress of the reading without the channel.
        while lseek(file.descriptor, 0, SEEK_CUR) < 32 << 20 { Processor.yield() }
        queue.resume()
        #expect(comes(ended))
        #expect(received.value == megabytes << 20)
        channel.end()
      }
    }

    @Test("S125 a cached read of nothing before the end, as of Linux 5.9", arguments: policies)
    func falseEnd(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        defer { SystemScript.clear() }
        let file = TemporaryFile(pattern(100))
        let channel = TestChannel(.stream, file.descriptor)
        let calls = Tally()
        SystemScript.redirect(.read) { call in policy != .ring && calls.add() == 1 ? 0 : call() }
        #expect(channel.read(100).finished() == [Call(true, pattern(100))])
        channel.end()
      }
    }

    @Test("memory for whole sectors is aligned, for files that are read without the kernel's cache")
    func aligned() throws {
      for count in [512, 4096, 8192, 200 << 10, 1 << 20] {
        let buffers = try (0..<4).map { _ in try #require(ReadBuffer.make(count, forFile: true)) }
        for buffer in buffers {
          #expect(UInt(bitPattern: buffer.memory) % 4096 == 0)
          #expect(buffer.capacity == count)
        }
        for buffer in buffers { _ = buffer.outcome(of: 0) }
      }
    }

    @Test("trap 5: /dev/null and /dev/zero, which cannot be watched", arguments: policies)
    func devices(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let null = TestChannel(.stream, path: "/dev/null", O_RDWR)
        #expect(null.write(pattern(100_000)).finished().last == Call(true, nil))
        #expect(null.read(10).finished() == [Call(true, [])])
        null.end()
        let zero = TestChannel(.stream, path: "/dev/zero", O_RDONLY)
        let calls = zero.read(3_000_000)
        #expect(calls.finished().last?.done == true)
        #expect(calls.bytes == [UInt8](repeating: 0, count: 3_000_000))
        zero.end()
      }
    }

    @Test("S125 operations that a descriptor's mode forbids", arguments: policies)
    func forbidden(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let file = TemporaryFile(pattern(10))
        let reader = open(file.path, O_RDONLY)
        let writer = open(file.path, O_WRONLY)
        let (reading, writing) = (TestChannel(.stream, reader), TestChannel(.stream, writer))
        #expect(reading.write([1, 2, 3]).finished() == [Call(true, [1, 2, 3], EBADF)])
        #expect(writing.read().finished() == [Call(true, nil, EBADF)])
        reading.end()
        writing.end()
        close(reader)
        close(writer)
      }
    }
  }
}
