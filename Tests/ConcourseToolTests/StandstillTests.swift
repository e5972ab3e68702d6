import Testing

@testable import ConcourseTool

/// Two looks at a process that is made up.
@Suite("what lasts between two looks")
struct StandstillTests {
  private static let (queue, word, suspensions, resumes, node): (UInt64, UInt64, UInt64, UInt64, UInt64) = (
    0x1000, 0x2000, 0x3000, 0x3008, 0x4000
  )
  private static let begin: UInt64 = 1_000_000_000
  private static let isSuspended: UInt64 = 1 << 54

  private let memory = ChangingMemory()

  init() {
    memory.words = [
      Self.word: Self.isSuspended, Self.suspensions: 1, Self.resumes: 5, Self.node + 8: 8, Self.node + 16: 16,
      Self.node + 24: 24,
    ]
  }

  private var snapshot: EngineSnapshot {
    var snapshot = EngineSnapshot(
      process: TargetProcess(id: 0, name: "made up", memory: memory, regions: [], threads: []))
    var queue = QueueInfo(
      address: Self.queue, kind: .serial, label: "made up", word: QueueWord(bits: Self.isSuspended),
      place: .init(word: Self.word, suspensions: Self.suspensions, resumes: Self.resumes), target: 0,
      level: 4, width: nil)
    (queue.items, queue.oldest) = (3, Self.node)
    snapshot.queues = [queue.address: queue]
    return snapshot
  }

  private func lasts(
    for duration: UInt64 = HoldWatch.least, changing place: UInt64? = nil, to word: UInt64 = 0
  )
    -> Bool
  {
    let earlier = Standstill(snapshot, at: Self.begin)
    if let place { memory.words[place] = word }
    return Standstill(snapshot, at: Self.begin + duration).common(with: earlier).isSuspended(Self.queue)
  }

  @Test("a queue that has stayed suspended")
  func suspended() {
    #expect(lasts())
    #expect(!lasts(for: HoldWatch.least - 1))
    // A push links the oldest node to a newer one.
    #expect(lasts(changing: Self.node, to: 0x5000))
  }

  @Test(
    "a queue that has been resumed, suspended once more, or has run an item",
    arguments: [(word, 0), (suspensions, 2), (node + 8, 9), (node + 24, 1), (resumes, 6)]
      as [(UInt64, UInt64)])
  func changed(_ place: UInt64, _ word: UInt64) {
    #expect(!lasts(changing: place, to: word))
  }

  @Test("a worker that still sleeps, and one that has begun another wait")
  func sleeps() {
    func look(_ since: UInt64, at time: UInt64) -> Standstill {
      var snapshot = snapshot
      var thread = ThreadInfo(id: 7, thread: TargetThread(id: 7), role: .worker(band: "made up"))
      (thread.wait, thread.blockedSince) = (.semaphore(0), since)
      snapshot.threads = [thread]
      return Standstill(snapshot, at: time)
    }
    let earlier = look(5, at: Self.begin)
    #expect(look(5, at: Self.begin + HoldWatch.least).common(with: earlier).sleeps(7))
    #expect(!look(6, at: Self.begin + HoldWatch.least).common(with: earlier).sleeps(7))
  }

  /// So the rings of the recording are read in time.
  @Test("with an earlier look, held queues are not watched")
  func doesNotWatch() {
    var snapshot = snapshot
    snapshot.queues[Self.queue]!.word = QueueWord(bits: 7)
    snapshot.queues[Self.queue]!.holders = [7]
    memory.words[Self.word] = 7
    memory.reads = 0
    let verdicts = Verdicts(snapshot, WaitGraph(snapshot), since: Standstill(snapshot))
    #expect(verdicts.all.map(\.kind) == [.nothing])
    #expect(memory.reads == 0)
    #expect(Verdicts(snapshot, WaitGraph(snapshot)).all.map(\.kind) == [.nothing])
    #expect(memory.reads >= 30)
  }
}

/// Some words of 64 bits that a test changes.
private final class ChangingMemory: TargetMemory {
  var words: [UInt64: UInt64] = [:]
  var reads = 0

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    reads += 1
    guard let word = words[address], bytes.count <= 8 else { return false }
    withUnsafeBytes(of: word) { bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<bytes.count])) }
    return true
  }
  func populated(_ region: MappedRegion) -> [Range<UInt64>] { [] }
}
