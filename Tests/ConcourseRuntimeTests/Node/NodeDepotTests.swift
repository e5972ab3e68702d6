import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("NodeDepot")
  struct NodeDepotTests {
    /// In its own process, whose memory nothing else changes. Sanitizers use most of the memory themselves.
    @Test(
      "a million pending items return their memory to the system",
      .enabled(if: !Sanitizer.isOn))
    func givenBack() async {
      await #expect(processExitsWith: .success) {
        _ = millionsRan.value
        for round in 0..<3 {
          let queue = DispatchQueue(label: "waiting", attributes: round == 1 ? .concurrent : [])
          let group = DispatchGroup()
          queue.sync {}
          let before = residentMebibytes()
          queue.suspend()
          // These closures capture nothing, so only nodes use memory.
          for _ in 0..<1_000_000 { queue.async(group: group) { millionsRan.add() } }
          let meanwhile = residentMebibytes()
          queue.resume()
          #expect(empties(group))
          // A million nodes of 48 bytes or more. The depot keeps at most five mebibytes, the threads a little more.
          #expect(meanwhile - before > 30)
          #expect(awaitValue { residentMebibytes() - before < 16 }, "\(residentMebibytes() - before) MiB")
        }
        #expect(millionsRan.value == 3_000_000)
      }
    }

    @Test("items go on while a thread that does not run holds the depot's lock, and the nodes come back")
    func holderDoesNotRun() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "serial")
        let ran = DispatchSemaphore(value: 0)
        // Threads of the pool exist, and have nodes.
        for _ in 0..<10 { queue.async { ran.signal() } }
        for _ in 0..<10 { #expect(comes(ran)) }
        let depot = NodeMagazine.depot
        let (isHeld, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        startThread {
          depot.lock.lock()
          isHeld.signal()
          mayGo.wait()
          depot.lock.unlock()
        }
        #expect(comes(isHeld))
        // Many times what a thread keeps.
        for round in 1...10 {
          for _ in 0..<10_000 { queue.async {} }
          queue.async { ran.signal() }
          if !comes(ran) { fatalError("round \(round)") }
        }
        mayGo.signal()
        depot.lock.withLock {}
        for _ in 0..<10_000 { queue.async {} }
        queue.async { if CurrentThread.state.pointee.free_count < 3 * NodeMagazine.batch { ran.signal() } }
        #expect(comes(ran))
      }
    }

    @Test("nodes that one thread takes and another returns, by the ten thousand: none is handed out twice")
    func exchange() {
      let threads = 4
      let count = Sanitizer.shrunk(40_000)
      let desks = (0..<threads).map { _ in Desk() }
      let spoiled = Tally()
      let ended = onThreads(threads) { thread in
        var dice = Seed.dice(thread, of: "exchange")
        for round in 0..<6 {
          let own = (0..<count).map { number in
            stamped((round * threads + thread) * count + number + 1)
          }
          guard comes(desks[thread].isFree) else { return }
          desks[thread].nodes.value = own
          desks[thread].isFull.signal()
          let next = (thread + 1) % threads
          guard comes(desks[next].isFull) else { return }
          var nodes = desks[next].nodes.value
          desks[next].isFree.signal()
          // In order, slabs become empty early; shuffled, they become empty late.
          if dice.hits(oneIn: 2) { nodes.shuffle(using: &dice) }
          let first = (round * threads + next) * count + 1
          var stamps = Set<Int>()
          for node in nodes { stamps.insert(stamp(of: node)) }
          if stamps.count != count || stamps.min() != first || stamps.max() != first + count - 1 {
            spoiled.add()
          }
          for node in nodes { giveBack(node) }
        }
      }
      #expect(ended)
      #expect(spoiled.value == 0)
    }

    @Test("slabs: each node once, and all but a few empty slabs are released", arguments: [true, false])
    func slabs(inOrder: Bool) {
      var dice = Seed.dice(inOrder ? 1 : 0)
      var slabs = NodeSlabs()
      for count in [100, 1, 60] {
        var nodes: [NodePointer] = []
        while nodes.count < count * NodeSlab.capacity(stride: NodeSlab.strideOfNew.value) {
          let (first, count) = slabs.take().linked()
          nodes += chained(first)
          #expect(count > 0 && count <= NodeMagazine.batch)
        }
        let used = Set(nodes.map { NodeSlab(of: $0) })
        #expect(Set(nodes).count == nodes.count)
        #expect(used.count == count)
        #expect(nodes.allSatisfy { $0 + 1 <= end(of: NodeSlab(of: $0)) })
        if !inOrder { nodes.shuffle(using: &dice) }
        var released = 0
        for start in stride(from: 0, to: nodes.count, by: 50) {
          let surplus = slabs.giveBack(chain(nodes[start..<min(start + 50, nodes.count)]))
          guard let surplus else { continue }
          released += surplus.count
          surplus.release()
        }
        #expect(released >= count - 2 * NodeSlabs.kept)
        #expect(released <= max(0, count - NodeSlabs.kept) + NodeSlabs.kept)
      }
    }

    @Test("slabs: nodes of a slab in use are handed out before those of an empty one")
    func preference() {
      var slabs = NodeSlabs()
      let (first, _) = slabs.take().linked()
      let (second, _) = slabs.take().linked()
      #expect(NodeSlab(of: first) == NodeSlab(of: second))
      #expect(slabs.giveBack(first)?.count == nil)
      var taken: [NodePointer] = []
      while taken.count < NodeSlab.capacity(stride: NodeSlab.strideOfNew.value) - Int(NodeMagazine.batch) {
        taken += chained(slabs.take().linked().first)
      }
      #expect(taken.allSatisfy { NodeSlab(of: $0) == NodeSlab(of: second) })
      let (other, _) = slabs.take().linked()
      #expect(NodeSlab(of: other) != NodeSlab(of: second))
      #expect(slabs.giveBack(other)?.count == nil)
      #expect(slabs.giveBack(chain(taken[...]))?.count == nil)
      #expect(slabs.giveBack(second)?.count == nil)
    }

    @Test("a process without memory for nodes says so and ends", .enabled(if: !Sanitizer.isOn))
    func refused() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "waiting")
        queue.async {}
        queue.sync {}
        queue.suspend()
        var limit = rlimit()
        #expect(getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0)
        limit.rlim_cur = rlim_t(mebibytes(ofStatistic: 0) + 32) << 20
        #expect(setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0)
        while true { queue.async {} }
      }
      let spoken = String(decoding: end?.standardErrorContent ?? [], as: UTF8.self)
      #expect(spoken.hasPrefix("Concourse: out of memory: the system refused "), "\(spoken)")
    }
  }
}

private let millionsRan = Tally()

/// Passes nodes from a thread to its neighbour.
private final class Desk: Sendable {
  let nodes = Unprotected<[NodePointer]>([])
  let isFull = DispatchSemaphore(value: 0)
  let isFree = DispatchSemaphore(value: 0)

  init() { isFree.signal() }
}

/// A node with a number in place of the group's address.
private func stamped(_ number: Int) -> NodePointer {
  // SAFETY: the address is never dereferenced, and not nil since numbers begin at 1.
  let bits = UnsafeRawPointer(bitPattern: number)!
  return NodeMagazine.make(.closure {}, level: .default, group: .fromOpaque(bits))
}

private func stamp(of node: NodePointer) -> Int {
  Int(bitPattern: node.pointee.group)
}

private func giveBack(_ node: NodePointer) {
  _ = node.takeWork()
  NodeMagazine.recycle(node)
}

private func chained(_ first: NodePointer) -> [NodePointer] {
  var nodes: [NodePointer] = []
  var rest: NodePointer? = first
  while let node = rest {
    nodes.append(node)
    // ORDERING: relaxed; the chain is the caller's.
    rest = node.pointee.next.load(ordering: .relaxed)
  }
  return nodes
}

private func chain(_ nodes: ArraySlice<NodePointer>) -> NodePointer {
  var next: NodePointer?
  for node in nodes.reversed() {
    // ORDERING: relaxed; the chain is the caller's.
    node.pointee.next.store(next, ordering: .relaxed)
    next = node
  }
  return next!
}

private func end(of slab: NodeSlab) -> NodePointer {
  // SAFETY: an address for comparisons only.
  (UnsafeMutableRawPointer(slab) + NodeSlab.size).assumingMemoryBound(to: WorkNode.self)
}

private func residentMebibytes() -> Int { mebibytes(ofStatistic: 1) }

/// A number of /proc/self/statm: 0 is the size of the address space, 1 the resident part.
func mebibytes(ofStatistic place: Int) -> Int {
  var bytes = [UInt8](repeating: 0, count: 256)
  let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
  defer { close(file) }
  let count = read(file, &bytes, bytes.count)
  let numbers = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
  return ((Int(numbers[place]) ?? 0) * sysconf(Int32(_SC_PAGESIZE))) >> 20
}
