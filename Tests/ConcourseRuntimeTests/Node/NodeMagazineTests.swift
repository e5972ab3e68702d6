import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("NodeMagazine")
  struct NodeMagazineTests {
    @Test("a thread keeps fewer than two batches, however many nodes it frees")
    func bounded() {
      let most = Shared(0)
      let ended = onThreads(1) { _ in
        let nodes = take(10 * Int(NodeMagazine.batch) + 3)
        for node in nodes {
          giveBack(node)
          let count = Int(CurrentThread.state.pointee.free_count)
          most.change { $0 = max($0, count) }
        }
      }
      #expect(ended)
      #expect(most.value > 0)
      #expect(most.value < 2 * Int(NodeMagazine.batch))
    }

    @Test("the node freed last is reused first, with new contents")
    func reuse() {
      let ended = onThreads(1) { _ in
        let node = NodeMagazine.make(.closure {}, level: .utility, traits: .barrier)
        giveBack(node)
        let again = NodeMagazine.make(.closure {}, level: .background)
        #expect(again == node)
        #expect(again.pointee.level == .background && again.pointee.traits == [])
        #expect(again.pointee.group == nil && again.pointee.admittedBy == nil)
        giveBack(again)
      }
      #expect(ended)
    }

    /// In its own process, where no other test uses nodes.
    @Test("nodes that an exiting thread leaves are found by the next thread")
    func threadExit() async {
      await #expect(processExitsWith: .success) {
        // Not whole batches, so that single nodes are combined.
        let counts = [1, 130, 62, 64, 65]
        let known = Shared<Set<UInt>>([])
        for count in counts {
          let ended = onThreads(1) { _ in
            let nodes = take(count)
            known.change { $0.formUnion(nodes.map { UInt(bitPattern: $0) }) }
            for node in nodes { giveBack(node) }
          }
          #expect(ended)
        }
        // A thread reports its end before its exit hook has run. After several rounds the nodes of the earlier ones
        // are back.
        let before = known.value.count
        for _ in 0..<200 {
          let ended = onThreads(1) { _ in
            let nodes = take(32)
            known.change { $0.formUnion(nodes.map { UInt(bitPattern: $0) }) }
            for node in nodes { giveBack(node) }
          }
          #expect(ended)
        }
        // 200 threads that lost their nodes would have used 6,400 of them.
        #expect(known.value.count <= before + 16 * Int(NodeMagazine.batch))
      }
    }

    @Test("a thread that has only freed nodes returns them when it exits")
    func consumerExit() async {
      await #expect(processExitsWith: .success) {
        let known = Shared<Set<UInt>>([])
        for _ in 0..<200 {
          let nodes = take(100)
          known.change { $0.formUnion(nodes.map { UInt(bitPattern: $0) }) }
          #expect(onJoinedThread { for node in nodes { giveBack(node) } })
        }
        // With lost nodes there would be 20,000.
        #expect(known.value.count <= 16 * Int(NodeMagazine.batch))
      }
    }

    @Test(
      "a thread that submits after its exit hook has run, however often, keeps no nodes")
    func useAfterExitHook() async {
      await #expect(processExitsWith: .success) {
        _ = take(1)
        // The key is made after ours, so its destructor runs after our hook in each round of destructors.
        var key = pthread_key_t()
        #expect(pthread_key_create(&key) { LateUse.destructor($0) } == 0)
        LateUse.key = key
        for _ in 0..<200 {
          let ended = onJoinedThread {
            giveBack(take(1)[0])
            pthread_setspecific(LateUse.key, UnsafeRawPointer(bitPattern: LateUse.rounds))
          }
          #expect(ended)
        }
        #expect(LateUse.count.value == 200 * LateUse.rounds)
        // If each thread kept a batch, there would be 200 nodes.
        #expect(LateUse.known.value.count <= 16)
      }
    }

    @Test("nodes that one thread makes and another frees are reused")
    func migration() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "consumer")
        let seen = Shared<Set<UInt>>([])
        for _ in 0..<200 {
          let node = NodeMagazine.make(.closure {}, level: .default)
          seen.change { _ = $0.insert(UInt(bitPattern: node)) }
          giveBack(node)
          for _ in 0..<100 { queue.async {} }
          queue.sync {}
        }
        #expect(seen.value.count <= 40 * Int(NodeMagazine.batch))
      }
    }
  }
}

private func take(_ count: Int) -> [NodePointer] {
  (0..<count).map { _ in NodeMagazine.make(.closure {}, level: .default) }
}

private func giveBack(_ node: NodePointer) {
  _ = node.takeWork()
  NodeMagazine.recycle(node)
}

/// A destructor that uses nodes and requests further rounds of destructors, as long as there are any.
private enum LateUse {
  /// The thread sanitizer frees its state of a thread in the last round. An instrumented function that the same round
  /// calls later reads from a null pointer (in `__tsan::TraceSwitchPart`), which ends the process with status 66.
  static let rounds = Sanitizer.isThread ? 3 : 4

  // SAFETY: written before the threads that read it are made.
  nonisolated(unsafe) static var key = pthread_key_t()
  static let known = Shared<Set<UInt>>([])
  static let count = Shared(0)

  static func destructor(_ value: UnsafeMutableRawPointer?) {
    let node = take(1)[0]
    known.change { _ = $0.insert(UInt(bitPattern: node)) }
    count.change { $0 += 1 }
    giveBack(node)
    pthread_setspecific(key, UnsafeRawPointer(bitPattern: UInt(bitPattern: value) - 1))
  }
}
