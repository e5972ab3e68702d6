// N. Sources of readiness to read and write.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("N. Read and write sources")
  struct ReadWriteSourceTests {
    private let queue = DispatchQueue(label: "descriptors")

    @Test("S108 data estimates the readable bytes")
    func readableBytes() throws {
      try withPipe { pipe in
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        source.setEventHandler {
          let data = source.data
          pipe.receive(Int(data))
          calls.record(data)
        }
        source.activate()
        for count in [1, 5, 1_000] {
          pipe.send(count)
          #expect(calls.comes())
        }
        #expect(kernelHadItsTurn())
        #expect(retire(source))
        #expect(calls.data == [1, 5, 1_000])
      }
    }

    @Test("S108 the handler is called again while unread data remains")
    func levelTriggeredRead() throws {
      for sockets in [false, true] {
        let body: (Ends) throws -> Void = { ends in
          let calls = Calls()
          let source = DispatchSource.makeReadSource(fileDescriptor: ends.near, queue: queue)
          source.setEventHandler {
            let data = source.data
            if calls.count >= 2 { ends.receive() }
            calls.record(data)
          }
          ends.send(5)
          source.activate()
          for _ in 0..<7 { #expect(calls.comes()) }
          #expect(kernelHadItsTurn())
          #expect(retire(source))
          #expect(calls.data == [5, 5, 5, 4, 3, 2, 1])
        }
        if sockets { try withSockets(body) } else { try withPipe(body) }
      }
    }

    @Test("S108 data written during a suspension is reported after it")
    func suspendedRead() throws {
      try withPipe { pipe in
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        source.setEventHandler {
          let data = source.data
          pipe.receive(Int(data))
          calls.record(data)
        }
        source.activate()
        source.suspend()
        pipe.send(2)
        #expect(kernelHadItsTurn())
        pipe.send(3)
        #expect(calls.count == 0)
        source.resume()
        #expect(calls.comes())
        #expect(calls.reaches(5))
        #expect(retire(source))
        #expect(calls.sum == 5)
      }
    }

    @Test("S109, trap 4: the end of a pipe is a call with data 0")
    func endOfPipe() throws {
      try withPipe { pipe in
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near, queue: queue)
        let ended = cancellation(of: source)
        source.setEventHandler {
          let data = source.data
          if data == 0 {
            source.cancel()
          } else {
            pipe.receive(Int(data))
            calls.record(data)
          }
        }
        source.activate()
        pipe.send(3)
        #expect(calls.comes())
        pipe.closeFar()
        #expect(ended.comes())
        #expect(calls.data == [3])
      }
    }

    #if CONCOURSE
      // Incumbent: one call with data 0, and the unread bytes are never reported.
      @Test(
        "S109 a pipe or a socket whose peer is gone reports all unread bytes first", arguments: [false, true])
      func unreadBytes(ofASocket: Bool) throws {
        let body: (Ends) throws -> Void = { ends in
          let calls = Calls()
          let source = DispatchSource.makeReadSource(fileDescriptor: ends.near, queue: queue)
          let ended = cancellation(of: source)
          source.setEventHandler {
            let data = source.data
            if data == 0 { source.cancel() } else { ends.receive(2) }
            calls.record(data)
          }
          ends.send(5)
          ends.closeFar()
          source.activate()
          for _ in 0..<4 { #expect(calls.comes()) }
          #expect(ended.comes())
          #expect(calls.data == [5, 3, 1, 0])
        }
        if ofASocket { try withSockets(body) } else { try withPipe(body) }
      }

      // Incumbent: watches no further after the first hang-up.
      @Test("S109, trap 2: a named pipe with a new writer after a hang-up is read again")
      func newWriter() throws {
        try withDirectory { directory in
          let path = directory + "/fifo"
          try #require(mkfifo(path, 0o600) == 0)
          let reader = open(path, O_RDONLY | O_NONBLOCK)
          try #require(reader >= 0)
          let calls = Calls()
          let source = DispatchSource.makeReadSource(fileDescriptor: reader, queue: queue)
          source.setEventHandler {
            let data = source.data
            if data > 0 {
              take(Int(data), from: reader)
              calls.record(data)
            }
          }
          source.activate()
          for count in 1...3 {
            let writer = open(path, O_WRONLY)
            #expect(writer >= 0)
            #expect(write(writer, [1, 2, 3], count) == count)
            close(writer)
            #expect(calls.comes())
          }
          #expect(retire(source))
          close(reader)
          #expect(calls.data == [1, 2, 3])
        }
      }
    #endif

    @Test("S109 a socket whose peer shut down keeps firing until cancelled, unread bytes first")
    func endOfSocket() throws {
      try withSockets { sockets in
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: sockets.near, queue: queue)
        source.setEventHandler {
          let data = source.data
          if data > 0 { sockets.receive(Int(data)) }
          calls.record(data)
        }
        sockets.send(4)
        shutdown(sockets.far, Int32(SHUT_WR))
        source.activate()
        for _ in 0..<5 { #expect(calls.comes()) }
        #expect(retire(source))
        let count = calls.count
        #expect(kernelHadItsTurn())
        #expect(calls.count == count)
        #expect(calls.data.first == 4)
        #expect(calls.data.dropFirst().allSatisfy { $0 == 0 })
      }
    }

    @Test("S109 a socket shut down for writing only, by its peer, still takes writes")
    func halfClosed() throws {
      try withSockets { sockets in
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: sockets.near, queue: queue)
        let ended = cancellation(of: source)
        source.setEventHandler {
          calls.record(source.data)
          source.cancel()
        }
        source.activate()
        shutdown(sockets.far, Int32(SHUT_WR))
        #expect(ended.comes())
        #expect(calls.data == [0])
        #expect(write(sockets.near, [1], 1) == 1)
        #expect(take(1, from: sockets.far) == 1)
      }
    }

    @Test("S110 a write source is called while there is space, not when there is none")
    func writable() throws {
      for sockets in [false, true] {
        let body: (Ends) throws -> Void = { ends in
          makeNonBlocking(ends.far)
          makeNonBlocking(ends.near)
          let calls = Calls()
          let full = DispatchSemaphore(value: 0)
          let source = DispatchSource.makeWriteSource(fileDescriptor: ends.far, queue: queue)
          source.setEventHandler {
            calls.record(source.data)
            let chunk = [UInt8](repeating: 1, count: 4_096)
            var written = 0
            while write(ends.far, chunk, chunk.count) > 0 { written += 1 }
            if written > 0 { full.signal() }
          }
          source.activate()
          #expect(full.comes())
          let count = calls.count
          #expect(kernelHadItsTurn())
          #expect(calls.count <= count + 1)
          while take(65_536, from: ends.near) > 0 {}
          #expect(full.comes())
          #expect(retire(source))
          #if CONCOURSE
            #expect(!calls.data.contains(0))
          #else
            // Incumbent: of a socket, the bytes not yet sent, so 0 when there is most space.
            if !sockets { #expect(!calls.data.contains(0)) }
          #endif
          while take(65_536, from: ends.near) > 0 {}
        }
        if sockets { try withSockets(body) } else { try withPipe(body) }
      }
    }

    @Test("S110, trap 5: regular files are always ready, in both directions")
    func regularFile() throws {
      try withFile([1, 2, 3]) { file, _ in
        let reads = Calls()
        let writes = Calls()
        let reader = DispatchSource.makeReadSource(fileDescriptor: file, queue: queue)
        reader.setEventHandler { reads.record(reader.data) }
        let writer = DispatchSource.makeWriteSource(fileDescriptor: file, queue: queue)
        writer.setEventHandler { writes.record(writer.data) }
        reader.activate()
        writer.activate()
        for _ in 0..<3 {
          #expect(reads.comes())
          #expect(writes.comes())
        }
        #expect(retire(reader))
        #expect(retire(writer))
        #expect(!writes.data.contains(0))
      }
    }

    @Test("S110 the data of a file is what is left to read, at its end 0")
    func restOfFile() throws {
      try withFile([1, 2, 3, 4, 5]) { file, _ in
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: file, queue: queue)
        let ended = cancellation(of: source)
        source.setEventHandler {
          let data = source.data
          calls.record(data)
          if data == 0 || calls.count > 10 {
            source.cancel()
          } else {
            take(2, from: file)
          }
        }
        source.activate()
        #expect(ended.comes())
        #expect(calls.data == [5, 3, 1, 0])
      }
    }

    @Test("S108, S109 a file that grows is read on")
    func growingFile() throws {
      try withFile { file, path in
        let writer = open(path, O_WRONLY | O_APPEND)
        try #require(writer >= 0)
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: file, queue: queue)
        source.setEventHandler {
          let data = source.data
          take(Int(data), from: file)
          #if CONCOURSE
            calls.record(data)
          #else
            // Incumbent: is called with 0 all the time.
            if data > 0 { calls.record(data) }
          #endif
        }
        source.activate()
        #if CONCOURSE
          #expect(calls.comes())
        #endif
        for count in 1...3 {
          #expect(write(writer, [1, 2, 3], count) == count)
          #expect(calls.comes())
          #if CONCOURSE
            #expect(calls.comes())
          #endif
        }
        #expect(retire(source))
        #expect(calls.data.filter { $0 > 0 } == [1, 2, 3])
        #if CONCOURSE
          #expect(calls.data == [0, 1, 0, 2, 0, 3, 0])
        #endif
        close(writer)
      }
    }

    @Test("S110, trap 5: sources on files and devices can be suspended and cancelled")
    func cancelledFile() throws {
      for path in ["/dev/null", "/dev/zero", "/etc/passwd"] {
        let file = open(path, O_RDONLY)
        try #require(file >= 0)
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: file, queue: queue)
        source.setEventHandler { calls.record(source.data) }
        source.activate()
        source.suspend()
        queue.sync {}
        let count = calls.count
        #expect(kernelHadItsTurn())
        #expect(calls.count == count)
        source.resume()
        #expect(retire(source))
        #expect(source.isCancelled)
        close(file)
      }
    }

    #if CONCOURSE
      // Incumbent: registers, but never fires.
      @Test("S110, trap 5: what the kernel cannot poll is always ready, like a file")
      func devices() throws {
        for path in ["/dev/null", "/dev/zero"] {
          let device = open(path, O_RDWR)
          try #require(device >= 0)
          let reads = Calls()
          let writes = Calls()
          let reader = DispatchSource.makeReadSource(fileDescriptor: device, queue: queue)
          reader.setEventHandler { reads.record(reader.data) }
          let writer = DispatchSource.makeWriteSource(fileDescriptor: device, queue: queue)
          writer.setEventHandler { writes.record(writer.data) }
          reader.activate()
          writer.activate()
          // The null device is at its end, which is reported at least once; the other always has more.
          for _ in 0..<(path == "/dev/null" ? 1 : 3) { #expect(reads.comes()) }
          for _ in 0..<3 { #expect(writes.comes()) }
          #expect(retire(reader))
          #expect(retire(writer))
          close(device)
          #expect(reads.data.allSatisfy { ($0 == 0) == (path == "/dev/null") })
          #expect(!writes.data.contains(0))
        }
      }
    #endif

    @Test("S111 several sources on one descriptor each get their events")
    func severalOnOne() throws {
      try withSockets { sockets in
        let reads = [Calls(), Calls()]
        let writes = [Calls(), Calls()]
        var sources: [any DispatchSourceProtocol] = []
        for calls in reads {
          let source = DispatchSource.makeReadSource(fileDescriptor: sockets.near, queue: queue)
          source.setEventHandler { calls.record(source.data) }
          sources.append(source)
        }
        for calls in writes {
          let source = DispatchSource.makeWriteSource(fileDescriptor: sockets.near, queue: queue)
          source.setEventHandler { calls.record(source.data) }
          sources.append(source)
        }
        for source in sources { source.activate() }
        for calls in writes { #expect(calls.comes()) }
        #expect(reads.allSatisfy { $0.count == 0 })
        sockets.send(3)
        for calls in reads { for _ in 0..<3 { #expect(calls.comes()) } }
        for calls in writes { for _ in 0..<3 { #expect(calls.comes()) } }
        for source in sources { #expect(retire(source)) }
        for calls in reads { #expect(calls.data.allSatisfy { $0 == 3 }) }
      }
    }

    @Test("S111, trap 3: sources on one descriptor are suspended, resumed and cancelled independently")
    func independent() throws {
      try withSockets { sockets in
        let (first, second, writes) = (Calls(), Calls(), Calls())
        let one = DispatchSource.makeReadSource(fileDescriptor: sockets.near, queue: queue)
        one.setEventHandler { first.record(one.data) }
        let two = DispatchSource.makeReadSource(fileDescriptor: sockets.near, queue: queue)
        two.setEventHandler { second.record(two.data) }
        let writer = DispatchSource.makeWriteSource(fileDescriptor: sockets.near, queue: queue)
        writer.setEventHandler { writes.record(writer.data) }
        for source: any DispatchSourceProtocol in [one, two, writer] { source.activate() }
        sockets.send()
        #expect(first.comes())
        #expect(second.comes())
        #expect(writes.comes())

        one.suspend()
        writer.suspend()
        queue.sync {}
        let (firstCount, writeCount) = (first.count, writes.count)
        for _ in 0..<10 { #expect(second.comes()) }
        #expect(kernelHadItsTurn())
        #expect(first.count == firstCount)
        #expect(writes.count == writeCount)

        #expect(retire(two))
        one.resume()
        while first.count <= firstCount + 2 { guard first.comes() else { break } }
        #expect(first.count > firstCount + 2)
        #expect(retire(one))
        #expect(writes.count == writeCount)
        writer.resume()
        while writes.count <= writeCount + 2 { guard writes.comes() else { break } }
        #expect(writes.count > writeCount + 2)
        #expect(retire(writer))
      }
    }

    #if CONCOURSE
      // Incumbent: registers, but is not called, when the pipe is full.
      @Test("trap 4: writers learn that the reader of a pipe is gone, and can be cancelled")
      func brokenPipe() throws {
        try withPipe { pipe in
          let calls = Calls()
          let source = DispatchSource.makeWriteSource(fileDescriptor: pipe.far, queue: queue)
          source.setEventHandler { calls.record(source.data) }
          makeNonBlocking(pipe.far)
          let chunk = [UInt8](repeating: 1, count: 65_536)
          while write(pipe.far, chunk, chunk.count) > 0 {}
          source.activate()
          #expect(kernelHadItsTurn())
          pipe.closeNear()
          #expect(calls.comes())
          #expect(retire(source))
          let count = calls.count
          #expect(kernelHadItsTurn())
          #expect(calls.count == count)
        }
      }
    #endif

    @Test("S108 a listening socket is readable when a peer connects")
    func listening() throws {
      let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      try #require(listener >= 0)
      defer { close(listener) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = inet_addr("127.0.0.1")
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let bound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
          bind(listener, generic, size) == 0 && listen(listener, 10) == 0
            && getsockname(listener, generic, &size) == 0
        }
      }
      try #require(bound)
      let calls = Calls()
      let source = DispatchSource.makeReadSource(fileDescriptor: listener, queue: queue)
      source.setEventHandler {
        calls.record(source.data)
        close(accept(listener, nil, nil))
      }
      source.activate()
      for _ in 0..<3 {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let connected = withUnsafePointer(to: &address) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, size) }
        }
        #expect(connected == 0)
        #expect(calls.comes())
        close(client)
      }
      #expect(retire(source))
      #expect(calls.count == 3)
    }

    @Test("S108 a terminal is read like a pipe", .enabled(if: access("/dev/ptmx", R_OK | W_OK) == 0))
    func terminal() throws {
      let master = open("/dev/ptmx", O_RDWR | O_NOCTTY)
      try #require(master >= 0)
      defer { close(master) }
      // TIOCSPTLCK and TIOCGPTN, which the Glibc module does not have.
      var unlock: Int32 = 0
      var number: UInt32 = 0
      try #require(ioctl(master, 0x4004_5431, &unlock) == 0)
      try #require(ioctl(master, 0x8004_5430, &number) == 0)
      let slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
      try #require(slave >= 0)
      defer { close(slave) }
      let calls = Calls()
      let source = DispatchSource.makeReadSource(fileDescriptor: slave, queue: queue)
      source.setEventHandler {
        let data = source.data
        take(Int(data), from: slave)
        calls.record(data)
      }
      source.activate()
      #expect(write(master, "line\n", 5) == 5)
      #expect(calls.comes())
      #expect(retire(source))
      #expect(calls.sum == 5)
    }

    @Test("S108 datagrams are reported one after the other")
    func datagrams() throws {
      try withSockets(datagrams: true) { sockets in
        let calls = Calls()
        let source = DispatchSource.makeReadSource(fileDescriptor: sockets.near, queue: queue)
        source.setEventHandler {
          calls.record(source.data)
          sockets.receive(100)
        }
        sockets.send(2)
        sockets.send(3)
        source.activate()
        #expect(calls.comes())
        #expect(calls.comes())
        #expect(kernelHadItsTurn())
        #expect(retire(source))
        #expect(calls.count == 2)
        #expect(!calls.data.contains(0))
      }
    }
  }
}
