import CConcourse
import Glibc
import Testing

@testable import ConcourseRuntime
@testable import ConcourseTool

@Suite("concourse report, parts")
struct ReportPartsTests {
  @Test(
    "the command reads each label as the engine does",
    arguments: [
      "", "a", "fourteen bytes", "fifteen bytes 1", "sixteen bytes 12", String(repeating: "long ", count: 90),
    ])
  func labels(label: String) {
    let ofHeap = String(Substring(label + "x").dropLast())
    let names = [QueueName(label), QueueName(ofHeap), QueueName(copying: label)]
    let memory = LiveMemory(process: getpid())
    for name in names {
      #expect(name.text == label)
      withUnsafePointer(to: name) { pointer in
        #expect(LabelWords.text(at: UInt64(UInt(bitPattern: pointer)), in: memory) == label)
      }
      name.free()
    }
  }

  @Test("the command counts readers as the engine does, also those that it counts apart")
  func readers() async {
    await #expect(processExitsWith: .success) {
      setenv("CONCOURSE_TOPOLOGY", "2x4", 1)
      let queue = DispatchQueue(label: "readers", attributes: .concurrent)
      let memory = LiveMemory(process: getpid())
      func readers() -> Int {
        // The address of the indicators is the first field.
        let indicators = withUnsafePointer(to: queue.extras.readers) {
          UnsafeRawPointer($0).load(as: UInt.self)
        }
        return QueueWord(
          bits: queue.state.snapshot.bits, apart: IndicatorWords.sum(at: UInt64(indicators), in: memory)
        ).readers
      }
      queue.sync { #expect(readers() == 1) }
      for _ in 0..<100_000 where !queue.state.snapshot.isApart { queue.readersCollided() }
      #expect(queue.state.snapshot.isApart)
      #expect(readers() == 0)
      queue.sync { queue.sync { #expect(readers() == 2) } }
      queue.state.addReaderPlace()
      #expect(readers() == 1)
      queue.endApart()
      #expect(readers() == 1 && queue.state.snapshot.readers == 1)
      queue.giveUpPlace()
      #expect(readers() == 0)
    }
  }

  @Test("indicators with impossible numbers count nothing", arguments: [0, 1, 2, 3, 1 << 14, 1 << 62])
  func impossibleIndicators(number: Int) {
    var block = [Int](repeating: .max, count: 3 * 16)
    (block[0], block[16]) = (number, .min)
    let sum = block.withUnsafeBytes {
      IndicatorWords.sum(
        at: UInt64(UInt(bitPattern: $0.baseAddress)), in: LiveMemory(process: getpid()))
    }
    #expect(sum == 0)
    for apart in [sum, -1 << 41, 1 << 41] {
      #expect(QueueWord(bits: (1 << 26 + 1) << 24, apart: apart).readers >= 0)
    }
  }

  @Test("the command decodes packed words as the engine does")
  func words() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<1000 {
      // Levels end at 5.
      let bits = UInt64.random(in: 0..<6, using: &random) << 60 | random.next() >> 4
      let (ours, theirs) = (QueueWord(bits: bits), QueueState.Snapshot(bits: bits))
      #expect(ours.owner == theirs.owner)
      let (counted, standing) = (Int(theirs.readers), Int(QueueState.Snapshot.standing))
      #expect(ours.readers == (theirs.hasStanding ? max(counted - standing, 0) : counted))
      #expect(ours.isPending == theirs.isPending)
      #expect(ours.isEnqueued == theirs.isEnqueued)
      #expect(ours.isSuspended == theirs.isSuspended)
      #expect(ours.isInactive == theirs.isInactive)
      #expect(ours.isNested == theirs.isNested)
      #expect(ours.isNarrow == theirs.isNarrow)
      #expect(ours.level == Int(theirs.level.rawValue))
      let (band, bandOfEngine) = (BandWord(bits: bits), BandCounters.Snapshot(bits: bits))
      #expect(band.active == bandOfEngine.active)
      #expect(band.searching == bandOfEngine.searching)
      #expect(band.parked == bandOfEngine.parked)
      #expect(band.threads == bandOfEngine.threads)
      let group = GroupWord(bits: bits)
      #expect(UInt64(group.entered) == bits & GroupState.enteredMask)
      #expect(UInt64(group.items) == (bits & GroupState.itemMask) / GroupState.item)
    }
    for (kind, engine): (QueueKind, ObjectKind) in [
      (.global, .global), (.serial, .serial), (.concurrent, .concurrent), (.workloop, .workloop),
      (.main, .main),
      (.runLoop, .runLoop),
    ] {
      #expect(kind.rawValue == engine.rawValue)
    }
    for level in 1..<QoSLevel.count {
      let kind = BandKind.allCases.firstIndex(of: BandKind(level: level))!
      let band = Runtime.shared.roots[level]._withUnsafeGuaranteedRef { $0.band.toOpaque() }
      #expect(band == Unmanaged.passUnretained(Runtime.shared.bands[kind]).toOpaque())
    }
    for stride in [NodeSlab.dense, NodeSlab.spread] {
      #expect(NodeIndex.capacity(stride: UInt64(stride)) == UInt64(NodeSlab.capacity(stride: stride)))
    }
    #expect(NodeIndex.strides == [NodeSlab.dense, NodeSlab.spread].map { UInt64($0) })
    #expect(NodeIndex.placeOfStride == MemoryLayout<NodeSlabHeader>.offset(of: \.stride)!)
  }

  @Test("a sorted array is searched for the first element behind a place")
  func sortedSearch() {
    for count in 0..<6 {
      let numbers = (0..<count).map { $0 * 10 }
      for place in -1...60 {
        #expect(numbers.sortedIndex { $0 >= place } == numbers.firstIndex { $0 >= place } ?? count)
      }
    }
  }

  @Test("nodes are looked for where the process has written only")
  func nodesInSparseMemory() throws {
    let memory = SparseMemory()
    let region = MappedRegion(
      start: SparseMemory.slab - 1 << 20, end: SparseMemory.slab + 1 << 30, isReadable: true,
      isWritable: true, isExecutable: false, isPrivate: true, offset: 0, path: "")
    let process = TargetProcess(id: 1, name: "sparse", memory: memory, regions: [region], threads: [])
    let first = SparseMemory.slab + 1 << 16 - NodeIndex.capacity(stride: 64) * 64
    var nodes = NodeIndex(in: process)
    #expect(nodes.takeList(endingAt: first + 64) == [first, first + 64])
    // Another list with the same end, as no engine makes it, does not have the nodes again.
    #expect(nodes.takeList(endingAt: first + 64) == [first + 64])
    #expect(memory.readElsewhere.isEmpty)
  }

  @Test("the record has the number of the pool's shards; a damaged number is mended")
  func shards() {
    // The first queue fills the record.
    DispatchQueue(label: "test.report.first").sync {}
    let record = concourse_inspection_get().pointee
    #expect(Int(record.shards) * BandKind.allCases.count == Runtime.shared.bands.count)
    #expect(
      MemoryLayout<concourse_inspection>.offset(of: \.shards) == InspectionRecord.shardsIndex * 8)
    #expect([0, 1, 2, 64, 65, .max].map(InspectionRecord.shards) == [1, 1, 2, 64, 64, 64])
  }

  @Test(
    "names of functions are short",
    arguments: [
      (
        "closure #1 @Sendable () -> () in static main.Transfers.move(from: Swift.Int, to: (Swift.Int, Swift.Int)) -> ()",
        "closure #1 in Transfers.move(from:to:)"
      ),
      ("main.work() -> Swift.Int", "work()"),
      ("main.work@Sendable () -> ()", "work()"),
      ("main.add(Swift.Int, with: (Swift.Int) -> ()) throws -> Swift.Int", "add(_:with:)"),
      ("partial apply forwarder for closure #2 () -> () in main.start() -> ()", "closure #2 in start()"),
      ("generic specialization <Swift.Int> of main.map<A>(A) -> A", "map<A>(_:)"),
      ("@objc closure #1 (Swift.Int) -> () in main.start() -> ()", "closure #1 in start()"),
      ("@objc main.(free in _0123456789ABCDEF)(pointer: Swift.Int) -> ()", "free(pointer:)"),
      ("main.Theatre.free.getter : Swift.Int", "Theatre.free.getter"),
      (
        "static (extension in Swift):Swift.Task< where A == (Swift.Int) -> (), B == Swift.Never>.sleep(for: Swift.Int) async -> ()",
        "Task.sleep(for:)"
      ),
      ("(extension in main):Swift.Int.half() -> Swift.Int", "Int.half()"),
      ("(extension in main):Swift.Task< where A", "Task< where A"),
      ("main.handler.setter : (Swift.Int) -> ()", "handler.setter"),
    ])
  func names(_ long: String, _ short: String) {
    #expect(Demangler.shorten(long) == short)
  }

  @Test(
    "names of C++ functions are without parameters, results and long arguments",
    arguments: [
      ("_ZNSt5mutex4lockEv", "std::mutex::lock"), ("_ZZ4mainENK3$_1clEv", "main::$_1::operator()"),
      ("_Z4workIiEvRSt6vectorIT_SaIS1_EE", "work<int>"),
      ("_ZN12_GLOBAL__N_14workEi", "(anonymous namespace)::work"),
      (
        "_ZNSt18condition_variable4waitIZZ4mainENK3$_1clEvEUlvE_EEvRSt11unique_lockISt5mutexET_",
        "std::condition_variable::wait<…>"
      ),
      ("_ZNK1AcvbEv", "A::operator bool"), ("_ZlsR1AS0_", "operator<<"), ("_ZN1AptEv", "A::operator->"),
      ("_Znwm", "operator new"), ("_ZNKSt8functionIFviEEclEi", "std::function<void (int)>::operator()"),
      ("_Zbroken", "_Zbroken"), ("main", "main"),
    ])
  func cxxNames(_ symbol: String, _ name: String) {
    #expect(Demangler.readable(symbol) == name)
  }

  @Test("of inlined functions of the C++ library, the program's line is shown")
  func ownLines() {
    func entry(_ function: String, _ file: String?, _ line: Int?) -> StackEntry {
      StackEntry(
        address: 1, image: "p", symbol: function, function: function, file: file, line: line, origin: .client)
    }
    let lock = entry("std::mutex::lock", "/usr/include/c++/13/bits/std_mutex.h", 100)
    let thread = entry("gthread", "/usr/lib/gcc/../../include/x86_64-linux-gnu/c++/13/gthr.h", 7)
    let work = entry("work", "/home/me/work.cpp", 6)
    #expect(FailurePlaces.shown([thread, lock, work]) == ["work  work.cpp:6"])
    #expect(FailurePlaces.shown([lock, entry("work", nil, nil)]) == ["std::mutex::lock  std_mutex.h:100"])
    #expect(FailurePlaces.shown([entry("work", nil, nil)]) == ["work"])
  }

  @Test("a main thread that waits for work serves its queue, also if items wait just now")
  func mainQueue() {
    var process = TargetProcess(id: 7, name: "made up", memory: EmptyMemory(), regions: [], threads: [])
    process.isFrozen = true
    var snapshot = EngineSnapshot(process: process)
    var queue = QueueInfo(
      address: 0x1000, kind: .main, label: "main", word: QueueWord(bits: 0), place: .init(word: 0), target: 0,
      level: 4, width: nil)
    queue.items = 3
    snapshot.queues = [queue.address: queue]
    for (wait, kind) in [(Wait.idle, Verdict.Kind.nothing), (.call("pause", nil), .mainQueue)] {
      var thread = ThreadInfo(id: 7, thread: TargetThread(id: 7), role: .main)
      thread.wait = wait
      snapshot.threads = [thread]
      #expect(Verdicts(snapshot, WaitGraph(snapshot)).all.map(\.kind) == [kind])
    }
  }

  @Test(
    "the core dump of a crash begins with the crash; one that another process has asked for does not",
    arguments: [
      (SIGSEGV, (1, 0x10), "the process crashed: SIGSEGV at the address 0x10 in the main thread"),
      (SIGABRT, (-6, 77), "the process crashed: SIGABRT in the main thread"),
      (SIGABRT, (0, 78), nil), (SIGSEGV, (0, 78), nil), (SIGQUIT, (0x80, 0), nil), (SIGABRT, nil, nil),
      (SIGSEGV, nil, "the process crashed: SIGSEGV in the main thread"),
    ] as [(Int32, (Int32, UInt64)?, String?)])
  func crash(_ signal: Int32, _ information: (Int32, UInt64)?, _ summary: String?) throws {
    let folder = try TemporaryFolder()
    var core = CoreBuilder()
    core.signal = signal
    core.signalInformation = information.map { (code: $0.0, origin: $0.1) }
    let path = try folder.write(core.bytes, to: "core", mode: 0o600)
    var snapshot = EngineSnapshot(process: try CoreFile.open(path))
    var queue = QueueInfo(
      address: 0x1000, kind: .serial, label: "held", word: QueueWord(bits: 0), place: .init(word: 0),
      target: 0, level: 4, width: nil)
    (queue.items, queue.holders) = (3, [77])
    snapshot.queues = [queue.address: queue]
    snapshot.threads = [ThreadInfo(id: 77, thread: TargetThread(id: 77), role: .main)]
    let verdicts = Verdicts(snapshot, WaitGraph(snapshot)).all
    #expect(verdicts.map(\.kind) == (summary == nil ? [.heldQueue] : [.crash, .heldQueue]))
    #expect(summary == nil || verdicts.first?.summary == summary)
  }

  @Test("an item that began while the process was read is named, not the one before")
  func beganMeanwhile() {
    var snapshot = EngineSnapshot(
      process: TargetProcess(id: 0, name: "made up", memory: CountingMemory(), regions: [], threads: []))
    var queue = QueueInfo(
      address: 0x1000, kind: .serial, label: "held", word: QueueWord(bits: 0), place: .init(word: 0),
      target: 0, level: 4, width: nil)
    (queue.items, queue.holders) = (3, [77])
    snapshot.queues = [queue.address: queue]
    func thread(in function: String) -> ThreadInfo {
      var thread = ThreadInfo(id: 77, thread: TargetThread(id: 77), role: .worker(band: "made up"))
      thread.stack = [
        StackEntry(
          address: 1, image: "p", symbol: function, function: function, file: nil, line: nil, origin: .client)
      ]
      return thread
    }
    snapshot.threads = [thread(in: "first")]
    let readAgain = { (threads: [ThreadInfo]) in
      #expect(threads.map(\.id) == [77])
      return [thread(in: "second")]
    }
    let verdicts = Verdicts(snapshot, WaitGraph(snapshot), readAgain: readAgain)
    #expect(verdicts.all.map { $0.details.first?.place } == ["second"])
    #expect(verdicts.snapshot.threads.map { $0.stack.first?.function } == ["second"])
  }

  @Test("a circle behind more queues than a stack has room for")
  func longWay() {
    var snapshot = EngineSnapshot(
      process: TargetProcess(id: 7, name: "made up", memory: EmptyMemory(), regions: [], threads: []))
    let count: UInt64 = 200_000
    func wait(_ id: UInt32, for queue: UInt64) -> ThreadInfo {
      var thread = ThreadInfo(id: id, thread: TargetThread(id: id))
      thread.wait = .turn(queue: queue, named: queue)
      return thread
    }
    // Each queue waits for its target, and the last one for its owner, which waits for a queue of the way.
    let enqueued: UInt64 = 1 << 53
    for address in 1...count {
      snapshot.queues[address] = QueueInfo(
        address: address, kind: .serial, label: "made up",
        word: QueueWord(bits: address == count ? 9 : enqueued),
        place: .init(word: 0), target: address + 1, level: 4, width: nil)
    }
    snapshot.threads = [wait(8, for: 1), wait(9, for: count - 2)]
    let cycles = WaitGraph(snapshot).cycles
    #expect(cycles == [[.thread(9), .queue(count - 2), .queue(count - 1), .queue(count)]])
  }

  @Test("classes that are one another's superclass, as no process has them")
  func circleOfClasses() throws {
    // Two classes: the superclass, where the class says what it is, and that description with its name.
    let memory = SwiftClasses([(0x1000, "A", 0x2000), (0x2000, "B", 0x1000)])
    let types = EngineTypes([0x1000, 0x2000], in: memory)
    let type = try #require(types["A"])
    #expect(types.isKind(type, of: "B"))
    #expect(!types.isKind(type, of: "C"))
  }

  @Test("an item is another one when the innermost queue's oldest entry is, and only then")
  func itemsDiffer() {
    for (differs, holds) in [(true, false), (false, true)] {
      let memory = CountingMemory()
      // The thread is awake without processor times, as in a process that has just ended.
      let process = TargetProcess(id: 0, name: "made up", memory: memory, regions: [], threads: [])
      var snapshot = EngineSnapshot(process: process)
      for (address, oldest) in [(0x1000, 0x7000), (0x3000, 0x8000)] as [(UInt64, UInt64)] {
        snapshot.queues[address] = QueueInfo(
          address: address, kind: .serial, label: "made up", word: QueueWord(bits: 0),
          place: .init(word: 0), target: 0, level: 4, width: nil)
        snapshot.queues[address]!.oldest = oldest
      }
      snapshot.queues[0x1000]!.holders = [7]
      var thread = ThreadInfo(id: 7, thread: TargetThread(id: 7), role: .worker(band: "made up"))
      (thread.frameAddress, thread.queueAddress) = (0x5000, 0x6000)
      snapshot.threads = [thread]
      memory.words = [0x6000: 0x3000]
      // What the oldest entry of the inner queue runs.
      memory.counted = differs ? 0x8008 : nil
      let watch = HoldWatch(snapshot, [snapshot.queues[0x1000]!])
      #expect((watch.durations[0x1000] != nil) == holds)
    }
  }

  @Test("of a process that ends while it is read, it is not said that it does not run on Concourse")
  func endsMeanwhile() throws {
    let program = try SpawnedProgram("/bin/true", [], environment: [], input: STDIN_FILENO)
    let id = program.identifier
    _ = try program.wait()
    let process = TargetProcess(id: id, name: "true", memory: EmptyMemory(), regions: [], threads: [])
    #expect {
      try InspectionRecord.find(in: process, [])
    } throws: { error in
      (error as? TargetProcess.Failure)?.reason == "process \(id) (true) has ended"
    }
  }

  /// On a busy machine the holder may get no processor before the last look.
  @Test("an item is another one if only the last look says so", arguments: [31, 32])
  func differsAtLast(_ look: Int) {
    let memory = CountingMemory()
    var snapshot = EngineSnapshot(
      process: TargetProcess(id: 0, name: "made up", memory: memory, regions: [], threads: []))
    snapshot.queues[0x1000] = QueueInfo(
      address: 0x1000, kind: .serial, label: "made up", word: QueueWord(bits: 0), place: .init(word: 0),
      target: 0, level: 4, width: nil)
    snapshot.queues[0x1000]!.holders = [7]
    var thread = ThreadInfo(id: 7, thread: TargetThread(id: 7), role: .worker(band: "made up"))
    thread.frameAddress = 0x5000
    snapshot.threads = [thread]
    // The first of 32 looks is before the watch.
    memory.changing = (0x5000, at: look)
    let watch = HoldWatch(snapshot, [snapshot.queues[0x1000]!])
    #expect(watch.durations[0x1000] == nil)
    memory.changing = (0x5000, at: 1000)
    #expect(HoldWatch(snapshot, [snapshot.queues[0x1000]!]).durations[0x1000] != nil)
  }

  @Test("the item of a node that is free, or has been pushed again, has ended")
  func endedItems() {
    /// - Parameters:
    ///   - nodes: of the list when it was read.
    ///   - list: of the list now.
    ///   - free: the ways of nodes that are not in the list.
    func look(_ nodes: [UInt64], now list: [UInt64], free: [UInt64]...) -> QueueInfo.OldestItem {
      let memory = CountingMemory()
      for way in [list] + free {
        for (node, next) in zip(way, way.dropFirst() + [0]) { memory.words[node] = next }
      }
      let place: UInt64 = 1 << 20
      memory.words[place] = list.last ?? 0
      return QueueInfo.ListPath(nodes, newestAt: place)!.oldestItem(in: memory, LinkBudget())
    }
    #expect(look([1, 2, 3], now: [1, 2, 3]) == .present)
    #expect(look([1], now: [1]) == .present)
    // Pushes.
    #expect(look([1, 2, 3], now: [1, 2, 3, 4, 5]) == .present)
    #expect(look([1], now: [1, 2]) == .present)
    // It is free: the only one, or in front of others.
    #expect(look([1, 2, 3], now: [2, 3], free: [1]) == .ended)
    #expect(look([1, 2, 3], now: [2, 3], free: [1, 9, 8]) == .ended)
    #expect(look([1, 2, 3], now: [4], free: [3, 2, 1, 9]) == .ended)
    // All are, in the old order; or no item has ended, and a producer has yet to link its node behind 4.
    #expect(look([1, 2, 3], now: [5, 6], free: [1, 2, 3, 4]) == .unknown)
    #expect(look([1, 2, 3], now: [5], free: [1, 2, 3]) == .unknown)
    #expect(look([1, 2, 3], now: [], free: [1, 2, 3]) == .ended)
    // It has been pushed again, and perhaps the one behind it, too.
    #expect(look([1, 2, 3], now: [2, 3, 1]) == .ended)
    #expect(look([1, 2, 3], now: [3, 4, 1, 2]) == .ended)
    #expect(look([1, 2, 3], now: [4, 1, 2], free: [3]) == .ended)
    // A long list of nodes that are pushed again as soon as they are free.
    let long = Array(1...5000 as ClosedRange<UInt64>)
    #expect(look(long, now: long + [5001]) == .present)
    #expect(look(long, now: Array(long[1000...]) + long[..<1000]) == .ended)
  }

  @Test("the way from the newest node always leads through the one at which an earlier look ended")
  func waysChange() {
    let memory = CountingMemory()
    let place: UInt64 = 1 << 20
    memory.words = [1: 2, 2: 0, place: 2]
    let path = QueueInfo.ListPath([1, 2], newestAt: place)!
    let looks: [([UInt64: UInt64], QueueInfo.OldestItem)] = [
      ([:], .present), ([2: 3, 3: 0, place: 3], .present), ([place: 5], .unknown), ([3: 4, 4: 0], .unknown),
      ([4: 5, 5: 0], .present),
      // The nodes behind 2 were free.
      ([2: 6, 6: 0, place: 6], .ended),
    ]
    for (changes, look) in looks {
      memory.words.merge(changes) { $1 }
      #expect(path.oldestItem(in: memory, LinkBudget()) == look)
    }
  }

  @Test(
    "a producer that has yet to link its node does not make a held queue look free",
    arguments: [(linksAt: 32, isHeld: true), (linksAt: 60, isHeld: true), (linksAt: .max, isHeld: false)])
  func producerWithoutLink(linksAt look: Int, isHeld: Bool) {
    let memory = CountingMemory()
    var snapshot = EngineSnapshot(
      process: TargetProcess(id: 0, name: "made up", memory: memory, regions: [], threads: []))
    let (first, newest, pushed, place): (UInt64, UInt64, UInt64, UInt64) = (0x7000, 0x7040, 0x7080, 0x8000)
    memory.words = [first: newest, pushed: 0, place: pushed]
    var queue = QueueInfo(
      address: 0x1000, kind: .serial, label: "made up", word: QueueWord(bits: 0), place: .init(word: 0),
      target: 0, level: 4, width: nil)
    queue.oldest = first
    queue.paths = [QueueInfo.ListPath([first, newest], newestAt: place)!]
    snapshot.queues[queue.address] = queue
    memory.linking = (newest, pushed, at: look)
    #expect((HoldWatch(snapshot, [queue]).durations[queue.address] != nil) == isHeld)
  }

  @Test("one budget for the lists of all queues; the queue with the most items is watched first")
  func budget() {
    let memory = CountingMemory()
    var snapshot = EngineSnapshot(
      process: TargetProcess(id: 0, name: "made up", memory: memory, regions: [], threads: []))
    let (length, place): (UInt64, UInt64) = (250, 1 << 30)
    let nodes = (1...length).map { $0 * 64 }
    for (node, next) in zip(nodes, nodes.dropFirst() + [0]) { memory.words[node] = next }
    memory.words[place] = nodes.last!
    let queues = (1...2000 as ClosedRange<UInt64>).map { number in
      var queue = QueueInfo(
        address: number << 32, kind: .serial, label: "made up", word: QueueWord(bits: 0),
        place: .init(word: 0), target: 0, level: 4, width: nil)
      queue.items = Int(number)
      queue.oldest = nodes[0]
      queue.paths = [QueueInfo.ListPath(nodes, newestAt: place)!]
      return queue
    }
    for queue in queues { snapshot.queues[queue.address] = queue }
    snapshot.links = LinkBudget(200_000)
    let watch = HoldWatch(snapshot, queues)
    #expect(memory.allReads < 250_000)
    #expect(watch.durations[2000 << 32] != nil && watch.durations[1 << 32] == nil)
  }

  @Test("a holder that got no processor while it was watched says nothing about its item")
  func holdersRun() {
    let enough = HoldWatch.leastRun
    #expect(!HoldWatch.haveRun([100], [100 + enough - 1]))
    #expect(HoldWatch.haveRun([100], [100 + enough]))
    #expect(HoldWatch.haveRun([100, 7], [100, 7 + enough]))
    #expect(!HoldWatch.haveRun([100, 7], [100, 7]))
    // None is awake; the kernel keeps no such times, or the thread is another one.
    #expect(HoldWatch.haveRun([], []))
    #expect(HoldWatch.haveRun([nil], [5]) && HoldWatch.haveRun([5], [nil]) && HoldWatch.haveRun([5], [4]))
  }

  @Test(
    "thunks of the compiler, also the parts of asynchronous ones, are known",
    arguments: [
      ("$sIetH_yts5Error_pIegHrzo_TR10async_MainTf3npf_nTQ0_", true), ("$sIeg_ytIegr_TRTA", true),
      ("$sxIeAgHr_xs5Error_pIegHrzo_s8SendableRzs5NeverORs_r0_lTRTQ0_", true),
      ("$s4main1MVAAyyYaFZTQ1_", false), ("main", false),
    ])
  func thunks(symbol: String, isThunk: Bool) {
    #expect(Demangler.isThunk(symbol) == isThunk)
  }

  @Test("JSON escapes what it must")
  func json() {
    #expect(JSONValue.string("a\"b\\c\n\u{1}é").text == "\"a\\\"b\\\\c\\n\\u0001é\"")
    #expect(JSONValue.array([]).text == "[]")
    #expect(JSONValue.object([("a", .int(1)), ("b", .null)]).text == "{\n  \"a\": 1,\n  \"b\": null\n}")
  }

  @Test(
    "the command line",
    arguments: [
      (["12"], ParsedCommandLine.options(ReportOptions(target: .process(12)))),
      (["--json", "12"], .options(ReportOptions(target: .process(12), isJSON: true))),
      (["--core=a", "--all"], .options(ReportOptions(target: .core("a"), showsAll: true))),
      (["--tasks", "12"], .options(ReportOptions(target: .process(12), showsTasks: true))),
      (["--recording=f", "--tasks"], .unusable("--recording has no --tasks")),
      (["--core"], .unusable("--core needs a path")),
      (["--recording"], .unusable("--recording needs a path")),
      (["--recording", "f", "--all"], .options(ReportOptions(target: .recording("f"), showsAll: true))),
      (["--recording=f", "--json"], .unusable("--recording has no --json")),
      (["1", "2"], .unusable("more than one process given")),
      (["-5"], .unusable("unknown option '-5'")),
      (["0"], .unusable("'0' is not the id of a process")),
      (["--help"], .help),
    ])
  func options(_ arguments: [String], _ parsed: ParsedCommandLine<ReportOptions>) {
    #expect(ReportOptions.parse(arguments) == parsed)
  }
}

/// A few words, and one that is another at each reading.
final class CountingMemory: TargetMemory {
  var words: [UInt64: UInt64] = [:]
  var counted: UInt64?
  private var count: UInt64 = 0
  /// A word that is another one from a certain read of it on.
  var changing: (address: UInt64, at: Int)? { didSet { reads = 0 } }
  /// A link that is 0 before a certain read of it.
  var linking: (address: UInt64, link: UInt64, at: Int)?
  private var reads = 0
  /// All reads.
  var allReads: UInt64 { count }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    count += 1
    if let linking, linking.address == address {
      reads += 1
      words[address] = reads < linking.at ? 0 : linking.link
    }
    if let changing, changing.address == address {
      reads += 1
      words[address] = reads < changing.at ? 1 : 2
    }
    guard let word = address == counted ? count : words[address], bytes.count <= 8 else { return false }
    withUnsafeBytes(of: word) { bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<bytes.count])) }
    return true
  }
  func populated(_ region: MappedRegion) -> [Range<UInt64>] { [] }
}

/// Of a process with classes that have no fields.
final class SwiftClasses: TargetMemory {
  private var words: [UInt64: UInt64] = [:]

  init(_ classes: [(metadata: UInt64, name: Character, parent: UInt64)]) {
    for (metadata, name, parent) in classes {
      let description = metadata + 0x100
      words[metadata] = 0
      words[metadata + 8] = parent
      words[metadata + 24] = 16
      words[metadata + 40] = description
      // The kind; how far it is to the name; no fields.
      words[description] = 16
      words[description + 8] = 40
      words[description + 48] = UInt64(name.asciiValue!)
      for offset: UInt64 in [16, 40, 56] { words[description + offset] = 0 }
    }
  }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    for (index, place) in (address..<address + UInt64(bytes.count)).enumerated() {
      guard let word = words[place & ~7] else { return false }
      bytes[index] = UInt8(truncatingIfNeeded: word >> (place % 8 * 8))
    }
    return true
  }
  func populated(_ region: MappedRegion) -> [Range<UInt64>] { [] }
}

/// Of a process none of whose memory can be read.
final class EmptyMemory: TargetMemory {
  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool { false }
  func populated(_ region: MappedRegion) -> [Range<UInt64>] { [] }
}

/// A large region of which only the first pages of a slab have been written. The slab has two nodes; the first one is
/// linked to the second.
final class SparseMemory: TargetMemory {
  static let slab: UInt64 = 0x7000_0000_0000
  private static let written = slab..<slab + 0x2000
  private var bytes = [UInt8](repeating: 0, count: 0x2000)
  private(set) var readElsewhere: [UInt64] = []

  init() {
    let first = 1 << 16 - Int(NodeIndex.capacity(stride: 64)) * 64
    for (offset, word) in [
      (8, 2), (16, 2), (NodeIndex.placeOfStride, 64), (first, Self.slab + UInt64(first) + 64),
    ] as [(Int, UInt64)] {
      bytes.replaceSubrange(offset..<offset + 8, with: word.littleBytes)
    }
  }

  func read(_ address: UInt64, into part: UnsafeMutableRawBufferPointer) -> Bool {
    guard Self.written.contains(address), Self.written.contains(address + UInt64(part.count) - 1) else {
      readElsewhere.append(address)
      return false
    }
    part.copyBytes(from: bytes[Int(address - Self.slab)...].prefix(part.count))
    return true
  }

  func populated(_ region: MappedRegion) -> [Range<UInt64>] { [Self.written] }
}
