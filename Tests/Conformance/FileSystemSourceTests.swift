// N. File-system object sources and memory pressure sources, which the incumbent lacks on Linux.

#if CONCOURSE

  import ConcourseEvents
  import Glibc
  import Testing

  extension Conformance {
    @Suite("N. File-system object and memory pressure sources")
    struct FileSystemSourceTests {
      private typealias Event = DispatchSource.FileSystemEvent
      private let queue = DispatchQueue(label: "files")

      /// What the handler saw: all events together, and a signal for each call.
      private final class Events: Sendable {
        private let all = Shared(UInt(0))
        private let calls = Calls()

        var union: Event { Event(rawValue: all.value) }
        var count: Int { calls.count }

        func record(_ event: Event) {
          all.change { $0 |= event.rawValue }
          calls.record(event.rawValue)
        }

        /// Whether all of these came in time.
        func include(_ events: Event) -> Bool {
          while !union.isSuperset(of: events) { guard calls.comes() else { return false } }
          return true
        }
      }

      /// An active source that records its events, registered when this returns.
      private func source(
        _ descriptor: Int32, _ mask: Event, _ events: Events
      ) -> any DispatchSourceFileSystemObject {
        let registered = DispatchSemaphore(value: 0)
        let source = DispatchSource.makeFileSystemObjectSource(
          fileDescriptor: descriptor, eventMask: mask, queue: queue)
        source.setRegistrationHandler { registered.signal() }
        source.setEventHandler { events.record(source.data) }
        source.activate()
        #expect(registered.comes())
        return source
      }

      @Test("S114 write and extend")
      func writing() throws {
        try withFile([1, 2, 3]) { file, path in
          let events = Events()
          let source = source(file, [.write, .extend], events)
          #expect(source.handle == file)
          #expect(source.mask == [.write, .extend])
          let writer = open(path, O_WRONLY | O_APPEND)
          try #require(writer >= 0)
          #expect(write(writer, [4], 1) == 1)
          #expect(events.include([.write, .extend]))
          close(writer)
          #expect(retire(source))
          #expect(source.mask.rawValue == 0)
        }
      }

      @Test("S114 a write in place is no extension")
      func inPlace() throws {
        try withFile([1, 2, 3]) { file, path in
          let events = Events()
          let source = source(file, [.write, .extend], events)
          let writer = open(path, O_WRONLY)
          try #require(writer >= 0)
          #expect(write(writer, [4], 1) == 1)
          #expect(events.include(.write))
          close(writer)
          #expect(retire(source))
          #expect(!events.union.contains(.extend))
        }
      }

      @Test("S114 attributes, links, renaming, deletion")
      func changes() throws {
        try withFile { file, path in
          let events = Events()
          let source = source(file, [.attrib, .link, .rename, .delete], events)
          #expect(chmod(path, 0o644) == 0)
          #expect(events.include(.attrib))
          #expect(link(path, path + ".link") == 0)
          #expect(events.include(.link))
          #expect(rename(path, path + ".renamed") == 0)
          #expect(events.include(.rename))
          #expect(!events.union.contains(.delete))
          #expect(unlink(path + ".link") == 0)
          #expect(unlink(path + ".renamed") == 0)
          #expect(events.include(.delete))
          #expect(retire(source))
        }
      }

      @Test("S114 a file deleted while open, by its only name")
      func deleted() throws {
        try withFile { file, path in
          let events = Events()
          let source = source(file, .delete, events)
          #expect(unlink(path) == 0)
          #expect(events.include(.delete))
          #expect(kernelHadItsTurn())
          #expect(retire(source))
          #expect(events.union == .delete)
          #expect(events.count == 1)
        }
      }

      @Test("S114 only what the mask asks for is reported")
      func mask() throws {
        try withFile { file, path in
          let renames = Events()
          let writes = Events()
          let renameSource = source(file, .rename, renames)
          let writeSource = source(file, .write, writes)
          #expect(write(file, [1], 1) == 1)
          #expect(writes.include(.write))
          #expect(kernelHadItsTurn())
          #expect(renames.count == 0)
          #expect(rename(path, path + ".renamed") == 0)
          #expect(renames.include(.rename))
          #expect(retire(renameSource))
          #expect(retire(writeSource))
          #expect(writes.union == .write)
          #expect(renames.union == .rename)
        }
      }

      @Test("S114 two sources on one file, and on a copy of the descriptor, one cancelled")
      func several() throws {
        try withFile { file, _ in
          let copy = dup(file)
          defer { close(copy) }
          let events = [Events(), Events(), Events()]
          let sources = zip([file, file, copy], events).map { source($0, .write, $1) }
          #expect(write(file, [1], 1) == 1)
          for events in events { #expect(events.include(.write)) }
          #expect(kernelHadItsTurn())
          #expect(retire(sources[0]))
          let counts = events.map(\.count)
          #expect(write(file, [1], 1) == 1)
          #expect(kernelHadItsTurn())
          #expect(retire(sources[1]))
          #expect(retire(sources[2]))
          #expect(events[0].count == counts[0])
          #expect(events[1].count > counts[1])
          #expect(events[2].count > counts[2])
        }
      }

      @Test("S114 events during a suspension are merged into one call")
      func suspended() throws {
        try withFile { file, path in
          let events = Events()
          let source = source(file, [.write, .attrib], events)
          source.suspend()
          #expect(write(file, [1], 1) == 1)
          #expect(chmod(path, 0o640) == 0)
          #expect(kernelHadItsTurn())
          #expect(events.count == 0)
          source.resume()
          #expect(events.include([.write, .attrib]))
          #expect(kernelHadItsTurn())
          #expect(retire(source))
          #expect(events.count == 1)
        }
      }

      @Test("S114 a directory is written when a name in it comes or goes")
      func directory() throws {
        try withDirectory { path in
          let descriptor = open(path, O_RDONLY | O_DIRECTORY)
          try #require(descriptor >= 0)
          defer { close(descriptor) }
          let events = Events()
          let source = source(descriptor, .write, events)
          close(open(path + "/new", O_WRONLY | O_CREAT, 0o600))
          #expect(events.include(.write))
          #expect(retire(source))
        }
      }

      @Test("S114 a file made anew under the old name is another file")
      func replaced() throws {
        try withFile { file, path in
          let events = Events()
          let source = source(file, [.write, .rename, .delete], events)
          #expect(rename(path, path + ".old") == 0)
          #expect(events.include(.rename))
          let another = open(path, O_WRONLY | O_CREAT, 0o600)
          #expect(write(another, [1], 1) == 1)
          close(another)
          #expect(kernelHadItsTurn())
          #expect(retire(source))
          #expect(events.union == .rename)
        }
      }

      @Test("S114 sources on files leave no descriptors behind, and the file may be closed after each")
      func again() throws {
        let before = openDescriptors()
        for _ in 0..<50 {
          try withFile { file, _ in
            let events = Events()
            let source = source(file, .write, events)
            #expect(write(file, [1], 1) == 1)
            #expect(events.include(.write))
            #expect(retire(source))
          }
        }
        #expect(openDescriptors() < before + 10)
      }

      @Test(
        "S114 memory pressure sources are made, registered and cancelled; without pressure they are silent")
      func memoryPressure() {
        typealias Event = DispatchSource.MemoryPressureEvent
        let registered = DispatchSemaphore(value: 0)
        let wrong = Shared(0)
        let source = DispatchSource.makeMemoryPressureSource(eventMask: .all, queue: queue)
        #expect(source.mask == .all)
        #expect(source.handle == 0)
        source.setRegistrationHandler { registered.signal() }
        source.setEventHandler {
          // There may be pressure on this machine, but nothing outside the mask is reported.
          if source.data.isEmpty || !source.data.isSubset(of: .all) { wrong.increment() }
        }
        source.activate()
        #expect(registered.comes())
        #expect(kernelHadItsTurn())
        #expect(retire(source))
        #expect(wrong.value == 0)
        #expect(Event.normal.rawValue == 1)
        #expect(Event.warning.rawValue == 2)
        #expect(Event.critical.rawValue == 4)
        #expect(Event.all == [.normal, .warning, .critical])
      }

      @Test("S114 the bits of file-system events")
      func bits() {
        let bits: [Event] = [.delete, .write, .extend, .attrib, .link, .rename, .revoke, .funlock]
        #expect(bits.map(\.rawValue) == [0x1, 0x2, 0x4, 0x8, 0x10, 0x20, 0x40, 0x100])
        #expect(Event.all == [.delete, .write, .extend, .attrib, .link, .rename, .revoke])
      }
    }
  }

#endif
