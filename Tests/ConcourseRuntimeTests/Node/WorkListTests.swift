import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("WorkList")
  struct WorkListTests {
    @Test("what is pushed comes out in order, and only the first push says that the list was empty")
    func order() {
      let list = WorkList()
      let nodes = (0..<4).map { _ in node {} }
      var wasEmpty = [list.isEmpty]
      for node in nodes { wasEmpty.append(list.push(node)) }
      #expect(wasEmpty == [true, true, false, false, false])
      var taken: [NodePointer] = []
      while let node = list.popFirst() { taken.append(node) }
      #expect(taken == nodes)
      let end = (list.isEmpty, list.isEmptyInTotalOrder, list.first() == nil, list.push(nodes[2]))
      #expect(end == (true, true, true, true))
      _ = list.popFirst()
      for node in nodes { discard(node) }
    }

    @Test("a consumer keeps its place itself, and puts it down with nodes left")
    func place() {
      let list = WorkList()
      let nodes = (0..<3).map { _ in node {} }
      for node in nodes { _ = list.push(node) }
      let first = list.first()
      #expect(first == nodes[0])
      let second = list.advance(past: nodes[0])
      #expect(second == nodes[1])
      let third = list.next(after: nodes[1])
      #expect(third == nodes[2])
      list.leave(at: nodes[1])
      var rest: [NodePointer] = []
      while let node = list.popFirst() { rest.append(node) }
      #expect(rest == Array(nodes[1...]))
      for node in nodes { discard(node) }
    }

    @Test("many producers, one consumer: nothing lost, each producer's order kept")
    func producers() {
      let producers = 4
      let count = Sanitizer.shrunk(20_000)
      let list = SharedList()
      let received = Unprotected([[Int]](repeating: [], count: producers))
      let consumed = DispatchSemaphore(value: 0)
      startThread {
        var left = producers * count
        while left > 0 {
          guard let node = list.list.popFirst() else {
            Processor.yield()
            continue
          }
          left -= 1
          if case .closure(let body) = node.takeWork() { body() }
          NodeMagazine.recycle(node)
        }
        consumed.signal()
      }
      let ended = onThreads(producers) { producer in
        for number in 0..<count {
          _ = list.list.push(node { received.value[producer].append(number) })
        }
      }
      #expect(ended && comes(consumed))
      #expect(received.value.allSatisfy { $0 == Array(0..<count) })
    }
  }
}

private final class SharedList: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): a WorkList is made for many producers and one consumer, as here.
  let list = WorkList()
}

private func node(_ body: @escaping () -> Void) -> NodePointer {
  NodeMagazine.make(.closure(body), level: .default)
}

private func discard(_ node: NodePointer) {
  _ = node.takeWork()
  NodeMagazine.recycle(node)
}
