import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  /// What a worker takes at once, with one worker in one of two pretended shards. Each test is a process of its own.
  @Suite("Batches")
  struct BatchTests {
    /// A worker that has run this many short entries knows that its entries are short.
    private static let many = 400

    private static func begin() {
      setenv("CONCOURSE_TOPOLOGY", "2x1", 1)
      _ = Runtime.shared
      PoolSize.settleWidth()
      // ORDERING: relaxed; nothing runs yet.
      PoolSize.part(of: 1).pointee.store(0, ordering: .relaxed)
      // A thread without free nodes looks for its shard when it takes a batch.
      NodeMagazine.recycle(NodeMagazine.make(.test, level: .default))
      CurrentThread.state.pointee.roots = 0
    }

    /// Whether the worker of this item has a batch.
    ///
    /// Its entries count as short, however long the machine makes them: the time until the worker takes the next one
    /// counts for a thousand entries.
    private static func workerHasBatch() -> Bool {
      guard let worker = WorkerThread.current else { return false }
      // ORDERING: relaxed; the worker's own.
      worker.pointee.batch.searchEnded(progress: worker.pointee.progress.load(ordering: .relaxed) &- 1_000)
      return !worker.pointee.batch.isEmpty
    }

    @Test(
      "S2 the only worker of a global queue runs its items in the order of their submission, also those of batches"
    )
    func order() async {
      await #expect(processExitsWith: .success) {
        Self.begin()
        // A worker whose thread the machine stops for a while would be replaced.
        PoolSize.cap = 1
        var isJudged = false
        // The machine may stop the worker where its time counts, and the monitor gives the other shard a worker when it
        // reads the quota again.
        for _ in 0..<50 where !isJudged {
          let (ran, misplaced, batches, others) = (Tally(), Tally(), Tally(), Tally())
          let group = DispatchGroup()
          // Submitted by the only worker, so that no worker runs items before all are submitted.
          DispatchQueue.global().async(group: group) {
            let worker = pthread_self()
            for number in 0..<Self.many {
              DispatchQueue.global().async(group: group) {
                if ran.value != number { misplaced.add() }
                ran.add()
                if Self.workerHasBatch() { batches.add() }
                if pthread_self() != worker { others.add() }
              }
            }
          }
          #expect(empties(group))
          #expect(ran.value == Self.many)
          guard others.value == 0 else { continue }
          #expect(misplaced.value == 0)
          isJudged = batches.value > 0
        }
        #expect(isJudged)
      }
    }

    @Test("S51 an item runs although the item before it, in the same batch, blocks its thread until then")
    func block() async {
      await #expect(processExitsWith: .success) {
        Self.begin()
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (reader, writer, group) = (ends[0], ends[1], DispatchGroup())
        let batches = Tally()
        // The machine may stop the worker where its time counts.
        for _ in 0..<50 where batches.value == 0 {
          DispatchQueue.global().async(group: group) {
            for _ in 0..<Self.many {
              DispatchQueue.global().async(group: group) { if Self.workerHasBatch() { batches.add() } }
            }
            for _ in 0..<8 {
              DispatchQueue.global().async(group: group) {
                var byte: UInt8 = 0
                #expect(read(reader, &byte, 1) == 1)
              }
              DispatchQueue.global().async(group: group) {
                var byte: UInt8 = 1
                #expect(write(writer, &byte, 1) == 1)
              }
            }
          }
          #expect(empties(group))
        }
        #expect(batches.value > 0)
      }
    }
  }
}
