import CConcourse
import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Crash {
  /// Each in a process of its own: a recording is of the whole process.
  @Suite("Recording")
  struct RecordingTests {
    private static func record(_ body: () throws -> Void) throws -> RecordedMemory {
      Recording.begin(until: .max)
      try body()
      Recording.end()
      return try #require(RecordedMemory.ofProcess())
    }

    @Test("each item of serial and concurrent queues is submitted, started and ended, on the same node")
    func items() async {
      await #expect(processExitsWith: .success) {
        // Both live to the end: the events of a freed one would be taken for those of a queue in its memory.
        let queues = [
          DispatchQueue(label: "test.recorded.serial"),
          DispatchQueue(label: "test.recorded.concurrent", attributes: .concurrent),
        ]
        for queue in queues {
          let label = queue.label
          let group = DispatchGroup()
          let memory = try RecordingTests.record {
            for _ in 0..<100 { queue.async(group: group) {} }
            for _ in 0..<10 { queue.async(group: group, execute: DispatchWorkItem {}) }
            #expect(empties(group))
            queue.sync(flags: .barrier) {}
          }
          queue.async {}
          queue.sync(flags: .barrier) {}
          let events = memory.events(of: label)
          #expect(events.filter { $0.event == .submitted }.count == 110)
          #expect(events.filter { $0.event == .started }.count == 110)
          #expect(events.filter { $0.event == .ended }.count == 110)
          // A node's events follow one another: submitted, started, ended, and again.
          for (_, ofNode) in Dictionary(grouping: events, by: \.node) {
            let order = ofNode.map(\.event)
            #expect(order == Array([[.submitted, .started, .ended]].joined().cycled(to: order.count)))
          }
          #expect(Set(events.map(\.function)).count == 2)
        }
      }
    }

    @Test("the call of a source's handler, a closure or a work item, is an item after an event of the source")
    func sourceHandler() async {
      await #expect(processExitsWith: .success) {
        let called = DispatchSemaphore(value: 0)
        let queues = ["closure", "item"].map { DispatchQueue(label: $0) }
        let sources = queues.map { queue in
          let source = DispatchSource.makeUserDataAddSource(queue: queue)
          if queue.label == "item" {
            source.setEventHandler(handler: DispatchWorkItem { called.signal() })
          } else {
            source.setEventHandler { called.signal() }
          }
          source.activate()
          return source
        }
        for queue in queues { queue.sync {} }
        let memory = try RecordingTests.record {
          for (source, queue) in zip(sources, queues) {
            for _ in 0..<10 {
              source.add(data: 7)
              #expect(comes(called))
            }
            queue.sync {}
          }
        }
        for queue in queues {
          #expect(memory.events(of: queue.label).map(\.event) == Array([.started, .ended].cycled(to: 20)))
        }
        #expect(memory.events.filter { $0.event == .source && $0.function == 7 }.count >= 20)
      }
    }

    @Test("a delayed item is scheduled by its caller, and submitted later on the same node")
    func delayed() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "test.recorded.delayed")
        let group = DispatchGroup()
        let memory = try RecordingTests.record {
          group.enter()
          group.enter()
          queue.asyncAfter(.milliseconds(20)) { group.leave() }
          queue.asyncAfter(deadline: .now() + .milliseconds(20), execute: DispatchWorkItem { group.leave() })
          #expect(empties(group))
          queue.sync {}
        }
        let events = memory.events.filter { $0.object == memory.names.first { $0.value == queue.label }?.key }
        let byNode = Dictionary(grouping: events.sorted { $0.ticks < $1.ticks }, by: \.node).values
        let items = byNode.filter { $0.contains { $0.event == .scheduled } }
        #expect(items.count == 2)
        for item in items {
          #expect(item.map(\.event) == [.scheduled, .submitted, .started, .ended])
          #expect(Set(item.map(\.function)).count == 1 && item[0].ring != item[1].ring)
        }
      }
    }

    @Test("a wait that sleeps is recorded with its kind and object")
    func waits() async {
      await #expect(processExitsWith: .success) {
        let semaphore = DispatchSemaphore(value: 0)
        let memory = try RecordingTests.record {
          let ended = DispatchSemaphore(value: 0)
          startThread {
            semaphore.wait()
            ended.signal()
          }
          // The thread spins for a while first.
          #expect(
            awaitValue { RecordedMemory.ofProcess()?.events.contains { $0.event == .waitBegan } == true })
          semaphore.signal()
          #expect(comes(ended))
        }
        let address = UInt(bitPattern: Unmanaged.passUnretained(semaphore).toOpaque())
        let waits = memory.events.filter { $0.object == address }
        #expect(waits.map(\.event) == [.waitBegan, .waitEnded])
        #expect(waits.allSatisfy { $0.node == UInt(Recording.Wait.semaphore.rawValue) })
      }
    }

    @Test("a wait that outlasts the patience of the search for deadlocks is one wait")
    func longWait() async {
      await #expect(processExitsWith: .success) {
        ProcessQueues.shared.blockedThreads.patience = 1_000_000
        let queue = DispatchQueue(label: "test.recorded.long")
        let address = UInt(bitPattern: Unmanaged.passUnretained(queue).toOpaque())
        func waits() -> [Recording.Event] {
          (RecordedMemory.ofProcess()?.events ?? []).filter {
            $0.object == address && [.waitBegan, .waitEnded].contains($0.event)
          }.map(\.event)
        }
        _ = try RecordingTests.record {
          let (release, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
          queue.async { release.wait() }
          startThread {
            queue.sync {}
            ended.signal()
          }
          #expect(awaitValue { waits() == [.waitBegan] })
          let begun = Clock.uptime()
          while Clock.uptime() < begun + 5_000_000 { Processor.pause() }
          release.signal()
          #expect(comes(ended))
        }
        #expect(waits() == [.waitBegan, .waitEnded])
      }
    }

    @Test("libraries that are loaded later are in the list of modules")
    func modules() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "test.recorded.modules")
        func list() -> String {
          guard let header = concourse_recording_memory() else { return "" }
          let start = UnsafeRawPointer(header) + Int(header.pointee.modules)
          return String(
            decoding: UnsafeRawBufferPointer(start: start, count: Int(header.pointee.module_count)),
            as: UTF8.self)
        }
        _ = try RecordingTests.record {
          // The worker has its ring.
          queue.async {}
          queue.sync {}
          let isThere = list().contains("libanl.so")
          #expect(!list().isEmpty && !isThere)
          #expect(dlopen("libanl.so.1", RTLD_NOW) != nil)
          #expect(
            awaitValue {
              queue.async {}
              queue.sync {}
              return list().contains("libanl.so")
            })
        }
      }
    }

    @Test("a ring is given to another thread when its own has ended")
    func rings() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "test.recorded.threads")
        let memory = try RecordingTests.record {
          for _ in 0..<300 { onJoinedThread { queue.async {} } }
          queue.sync {}
        }
        #expect(memory.header.ring_count < 100)
        #expect(memory.header.lost == 0)
        let threads = memory.events.filter { $0.event == .threadBegan }
        #expect(threads.count >= 300)
        #expect(memory.events.filter { $0.event == .threadEnded }.count >= 300)
      }
    }

    @Test("recording ends by itself when its time has passed")
    func deadline() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "test.recorded.deadline")
        Recording.begin(until: Clock.uptime() + 1_000_000)
        #expect(
          awaitValue {
            queue.sync {}
            queue.async {}
            return !Recording.isOn
          })
      }
    }

    @Test("a full ring drops the oldest record, and its head counts them all")
    func wrap() {
      let capacity = 64
      let records = UnsafeMutablePointer<concourse_event_record>.allocate(capacity: capacity)
      defer { records.deallocate() }
      var ring = concourse_event_ring()
      ring.records = records
      for number in 0..<UInt64(capacity + 10) {
        concourse_event_ring_append(&ring, UInt64(capacity - 1), number, 0, number * 2, number * 3)
      }
      #expect(ring.head == UInt64(capacity + 10))
      let ticks = (0..<capacity).map { records[$0].ticks }
      #expect(Set(ticks) == Set(10..<UInt64(capacity + 10)))
      #expect(records[3].object == 2 * 67 && records[3].function == 3 * 67)
    }

    @Test(
      "queues beyond the room for names are marked, so that no older name of their memory is taken for theirs"
    )
    func names() async {
      await #expect(processExitsWith: .success) {
        let memory = try RecordingTests.record {
          for number in 0..<8192 {
            #expect(Recording.name(0x10000 + UInt(number) * 16, "q", kind: 0, target: 0, isMade: false))
          }
          #expect(Recording.name(0x10020, "again", kind: 0, target: 0, isMade: false))
        }
        let header = try #require(concourse_recording_memory())
        let bits = UnsafeRawPointer(header) + Int(CONCOURSE_RECORDING_UNNAMED)
        let bytes = (0..<Int(CONCOURSE_RECORDING_UNNAMED_BITS) / 8).map {
          bits.load(fromByteOffset: $0, as: UInt8.self)
        }
        let place = 0x10020 / 16 % Int(CONCOURSE_RECORDING_UNNAMED_BITS)
        #expect(memory.header.lost_names == 1 && memory.names[0x10020] == "q")
        #expect(bytes.filter { $0 != 0 } == [1 << UInt8(place % 8)] && bytes[place / 8] != 0)
      }
    }

    @Test("streams are counted up to 65,535, and one more is refused")
    func streams() async {
      await #expect(processExitsWith: .success) {
        for _ in 0..<65535 { #expect(Recording.beginStream()) }
        #expect(!Recording.beginStream() && Recording.isOn)
        for _ in 0..<65535 { Recording.endStream() }
        #expect(!Recording.isOn)
      }
    }

    @Test(
      "memory that the system refuses is reported in one line, and there are no streams",
      .enabled(if: !Sanitizer.isOn))
    func refusedMemory() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
        let former = limit
        limit.rlim_cur = 1
        setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
        let isRefused = !Recording.beginStream() && !Recording.beginStream()
        var unlimited = former
        setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &unlimited)
        #expect(isRefused && !Recording.isOn)
      }
      let text = end.map { String(decoding: $0.standardErrorContent, as: UTF8.self) } ?? ""
      let lines = text.split(separator: "\n").filter { $0.contains("nothing can be recorded") }
      #expect(
        lines.count == 1 && lines[0].hasSuffix("MiB of address space: Cannot allocate memory"), "\(text)")
    }

    @Test("room is made in the recorder's own file, not in another one that has its name now")
    func otherFile() throws {
      let path = "/tmp/concourse-identity-\(getpid())"
      func make() throws -> concourse_file_identity {
        let file = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        var identity = concourse_file_identity()
        #expect(concourse_identify_file(file, &identity))
        return identity
      }
      defer { unlink(path) }
      let size = { () -> Int in
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : -1
      }
      var own = try make()
      #expect(concourse_reserve_file(path, &own, 4096, 4096) == 0 && size() == 8192)
      // Kept, so that its number is not given to the next.
      try #require(rename(path, path + ".own") == 0)
      defer { unlink(path + ".own") }
      _ = try make()
      #expect(concourse_reserve_file(path, &own, 4096, 4096) == ENOENT && size() == 0)
    }

    @Test("a name is cut to 95 bytes, at a character")
    func longName() async {
      await #expect(processExitsWith: .success) {
        let queues = ["long", "é"].map { DispatchQueue(label: String(repeating: $0, count: 50)) }
        let memory = try RecordingTests.record {
          for queue in queues {
            queue.async {}
            queue.sync {}
          }
        }
        for (queue, length) in zip(queues, [95, 47]) {
          #expect(memory.events(of: String(queue.label.prefix(length))).count == 3)
        }
      }
    }
  }
}

@Suite("The code of a block")
struct BlockCodeTests {
  private typealias Block = @convention(block) () -> Void

  private func code(_ block: @escaping Block) -> UInt {
    withExtendedLifetime(block) {
      // SAFETY: a block is the address of its memory, which lives meanwhile.
      ItemRecording.code(ofBlock: unsafeBitCast(block, to: UnsafeRawPointer.self))
    }
  }

  @Test("a block that Swift made of a closure has the closure's code, with and without captures")
  func swiftBlocks() {
    var calls = 0
    let counts: () -> Void = { calls += 1 }
    let nothing: () -> Void = {}
    for closure in [counts, nothing] {
      let block: Block = closure
      block()
      #expect(code(block) == ItemRecording.code(of: closure))
    }
    #expect(calls == 1)
    #expect(ItemRecording.code(of: counts) != ItemRecording.code(of: nothing))
  }

  @Test("a block of C has its own code, whatever it has captured")
  func blocksOfC() {
    let other: @convention(c) () -> Void = {}
    // SAFETY: a C function is its address.
    let function = UInt(bitPattern: unsafeBitCast(other, to: UnsafeRawPointer.self))
    let copies: UInt = 1 << 25
    let object = UnsafeMutablePointer<UInt>.allocate(capacity: 2)
    let descriptor = UnsafeMutablePointer<UInt>.allocate(capacity: 4)
    defer {
      object.deallocate()
      descriptor.deallocate()
    }
    /// A block of six words; `code(of:)` of the function is in its third.
    func codeOfBlock(flags: UInt, size: UInt, captured: UInt) -> UInt {
      descriptor.initialize(repeating: 0, count: 4)
      descriptor[1] = size
      return withUnsafeTemporaryAllocation(of: UInt.self, capacity: 6) { words in
        _ = words.initialize(
          from: [0, flags, function &+ 1, UInt(bitPattern: descriptor), captured, UInt(bitPattern: object)])
        return ItemRecording.code(ofBlock: words.baseAddress!)
      }
    }
    let own = function + 1
    #expect(codeOfBlock(flags: copies, size: 48, captured: function) == function)
    #expect(codeOfBlock(flags: 0, size: 48, captured: function) == own)
    #expect(codeOfBlock(flags: copies, size: 56, captured: function) == own)
    #expect(codeOfBlock(flags: copies, size: 40, captured: function) == own)
    // An object, data, nothing, and code of another module, which no sanitizer has in this one.
    let abroad = UInt(bitPattern: dlsym(nil, "gnu_get_libc_version"))
    for captured in [UInt(bitPattern: object), UInt(bitPattern: descriptor), 0, .max, abroad] {
      #expect(codeOfBlock(flags: copies, size: 48, captured: captured) == own)
    }
  }
}

/// Runs `body` on a thread of its own, and returns when that has ended.
private func onJoinedThread(_ body: @escaping @Sendable () -> Void) {
  final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let start = Unmanaged.passRetained(Start(body))
  let failure = pthread_create(
    &thread, nil,
    { argument in
      Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue().body()
      return nil
    }, start.toOpaque())
  #expect(failure == 0)
  pthread_join(thread, nil)
}

extension Collection {
  /// The elements again and again, `count` in all.
  fileprivate func cycled(to count: Int) -> [Element] {
    (0..<count).map { self[index(startIndex, offsetBy: $0 % self.count)] }
  }
}
