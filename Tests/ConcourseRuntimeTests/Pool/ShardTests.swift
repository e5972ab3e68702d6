import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  /// Several shards, pretended on the machine at hand. Each test is a process of its own, which sets the topology before
  /// it uses the pool.
  @Suite("Shards")
  struct ShardTests {
    /// Lets the calling thread's next submission go to a shard.
    private static func enter(_ shard: Int) {
      // A thread without free nodes looks for its shard when it takes a batch.
      NodeMagazine.recycle(NodeMagazine.make(.test, level: .default))
      CurrentThread.state.pointee.roots = UInt32(Shard(number: shard).firstRoot)
    }

    /// Pretends shards, the last of which gets no processors, as a small quota leaves it.
    private static func pretendWithoutProcessors(_ topology: String) {
      setenv("CONCOURSE_TOPOLOGY", topology, 1)
      _ = Runtime.shared
      PoolSize.settleWidth()
      // ORDERING: relaxed; nothing runs yet.
      PoolSize.part(of: Runtime.shared.shardCount - 1).pointee.store(0, ordering: .relaxed)
    }

    private static var shardOfWorker: Int? {
      WorkerThread.current?.pointee.band._withUnsafeGuaranteedRef { $0.shard.number }
    }

    /// An entry that submits itself again, to the shard that it runs in, until `end` is counted.
    private static func chain(until end: Tally, _ each: @escaping @Sendable () -> Void = {}) {
      DispatchQueue.global().async {
        each()
        if end.value == 0 { chain(until: end, each) }
      }
    }

    @Test("S2 every shard has bands and roots of its own, and the client sees one queue for each class")
    func structure() async {
      await #expect(processExitsWith: .success) {
        setenv("CONCOURSE_TOPOLOGY", "2x4x8", 1)
        let runtime = Runtime.shared
        #expect(runtime.shardCount == 8 && runtime.bands.count == 24 && PoolSize.width == 64)
        for (place, band) in runtime.bands.enumerated() {
          #expect(band.shard.number == place / 3 && band.shard.width == 8)
          #expect(band.shard.neighbours.count == 7)
          #expect(
            band.roots.allSatisfy {
              $0.takeUnretainedValue().band.toOpaque() == Unmanaged.passUnretained(band).toOpaque()
            })
        }
        // The neighbours of the same node come first.
        let nearest = runtime.bands[3].shard.neighbours.prefix(3).map {
          $0.takeUnretainedValue().shard.number
        }
        #expect(Set(nearest) == [0, 2, 3])
        let seen = Shared<Set<UnsafeMutableRawPointer>>([])
        for shard in 0..<8 {
          Self.enter(shard)
          let root = Runtime.root(at: .utility)
          #expect(root.takeUnretainedValue().level == .utility)
          seen.change { $0.insert(root.toOpaque()) }
        }
        #expect(seen.value.count == 8)
      }
    }

    @Test("S143 what one thread submits occupies the processors of all shards")
    func help() async {
      await #expect(processExitsWith: .success) {
        // A helper takes as many entries at once as its shard has workers.
        setenv("CONCOURSE_TOPOLOGY", "3x8", 1)
        let (arrived, group) = (Tally(), DispatchGroup())
        let shards = Shared<Set<Int>>([])
        for _ in 0..<24 {
          DispatchQueue.global().async(group: group) {
            shards.change { if let shard = Self.shardOfWorker { $0.insert(shard) } }
            arrived.add()
            // The monitor adds a worker only after 100, then 200, then 400 ms of this: that takes hours for sixteen.
            #expect(awaitValue { arrived.value == 24 })
          }
        }
        #expect(empties(group))
        #expect(shards.value.count == 3)
      }
    }

    @Test("S51 a full shard whose workers compute is served by busy workers of others")
    func fullShard() async {
      await #expect(processExitsWith: .success) {
        setenv("CONCOURSE_TOPOLOGY", "2x1", 1)
        _ = Runtime.shared
        let (end, turns, group) = (Tally(), Tally(), DispatchGroup())
        // The worker of one shard computes, and the other's never runs out of entries.
        let full = Shared<Int?>(nil)
        DispatchQueue.global().async(group: group) {
          full.change { $0 = Self.shardOfWorker }
          #expect(awaitValue { end.value > 0 })
        }
        #expect(awaitValue { full.value != nil })
        let shard = full.value!
        Self.enter(1 - shard)
        Self.chain(until: end) { turns.add() }
        #expect(awaitValue { turns.value > 100 })
        let helpers = Shared<[Int?]>([])
        for _ in 0..<3 {
          Self.enter(shard)
          DispatchQueue.global().async(group: group) { helpers.change { $0.append(Self.shardOfWorker) } }
        }
        #expect(awaitValue { helpers.value.count == 3 })
        end.add()
        #expect(empties(group))
        // After a tenth of a second the monitor would have given the shard another worker.
        #expect(helpers.value.contains(1 - shard))
      }
    }

    @Test("S143 a shard without processors of its own is served by others")
    func withoutProcessors() async {
      await #expect(processExitsWith: .success) {
        Self.pretendWithoutProcessors("2x2")
        let group = DispatchGroup()
        let shards = Shared<Set<Int?>>([])
        for _ in 0..<100 {
          Self.enter(1)
          DispatchQueue.global().async(group: group) { shards.change { $0.insert(Self.shardOfWorker) } }
        }
        #expect(empties(group))
        #expect(shards.value == [0])
        let queue = DispatchQueue(label: "test.shards.serial")
        Self.enter(1)
        #expect(queue.sync { 1 } == 1)
        let done = DispatchSemaphore(value: 0)
        queue.async { done.signal() }
        #expect(comes(done))
      }
    }

    @Test("S143 a shard without processors gets a worker if those of the other shard wait for its entry")
    func withoutHelpers() async {
      await #expect(processExitsWith: .success) {
        Self.pretendWithoutProcessors("2x1")
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let (input, output) = (ends[0], ends[1])
        let (began, group, goesOn) = (Tally(), DispatchGroup(), Tally())
        // It sleeps in a call unknown to the engine.
        Self.enter(0)
        DispatchQueue.global().async(group: group) {
          began.add()
          var byte: UInt8 = 0
          #expect(read(input, &byte, 1) == 1)
        }
        #expect(awaitValue { began.value == 1 })
        Self.enter(1)
        DispatchQueue.global().async(group: group) { #expect(write(output, "x", 1) == 1) }
        #expect(empties(group))
        // It computes.
        Self.enter(0)
        DispatchQueue.global().async(group: group) {
          began.add()
          #expect(awaitValue { goesOn.value == 1 })
        }
        #expect(awaitValue { began.value == 2 })
        Self.enter(1)
        DispatchQueue.global().async(group: group) { goesOn.add() }
        #expect(empties(group))
      }
    }

    @Test("trap 19: a shard to which the system refuses threads is served by the idle worker of another")
    func withoutThreads() async {
      await #expect(processExitsWith: .success) {
        setenv("CONCOURSE_TOPOLOGY", "3x2", 1)
        _ = Runtime.shared
        let done = DispatchSemaphore(value: 0)
        Self.enter(2)
        DispatchQueue.global().async { done.signal() }
        #expect(comes(done))
        #expect(awaitValue { Runtime.shared.bands[6].counters.snapshot.parked == 1 })
        SystemScript.refuse(.thread, with: EAGAIN)
        for _ in 0..<100 {
          Self.enter(1)
          DispatchQueue.global().async { done.signal() }
          #expect(comes(done))
        }
        #expect(!Runtime.shared.monitor.hasThread)
        SystemScript.clear()
      }
    }

    @Test("S46 lowered bands of other shards help theirs, and what waits there is boosted")
    func loweredBands() async {
      await #expect(processExitsWith: .success) {
        setenv("CONCOURSE_TOPOLOGY", "3x2", 1)
        _ = Runtime.shared
        let (arrived, group) = (Tally(), DispatchGroup())
        for _ in 0..<6 {
          DispatchQueue.global(qos: .background).async(group: group) {
            arrived.add()
            #expect(awaitValue { arrived.value == 6 })
          }
        }
        // The waiting thread looks at the lowered roots of all shards.
        #expect(empties(group))
      }
    }

    @Test(
      "S4 a serial queue that threads of all shards submit to runs one item at a time, in each thread's order"
    )
    func serialQueue() async {
      await #expect(processExitsWith: .success) {
        setenv("CONCOURSE_TOPOLOGY", "8x8", 1)
        _ = Runtime.shared
        let queue = DispatchQueue(label: "test.shards.order")
        let (ended, group) = (Tally(), DispatchGroup())
        let last = Shared<[Int]>(Array(repeating: -1, count: 8))
        let inside = Tally()
        for thread in 0..<8 {
          startThread {
            for number in 0..<500 {
              Self.enter((thread + number) % 8)
              queue.async(group: group) {
                inside.add()
                #expect(inside.value % 2 == 1)
                last.change {
                  #expect($0[thread] == number - 1)
                  $0[thread] = number
                }
                inside.add()
              }
            }
            ended.add()
          }
        }
        #expect(awaitValue { ended.value == 8 })
        #expect(empties(group))
        #expect(last.value == Array(repeating: 499, count: 8))
      }
    }
  }
}
