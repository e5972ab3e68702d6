import ConcourseRuntime
import Testing

@Suite("DispatchWorkloop", .serialized)
struct DispatchWorkloopTests {
  /// Items in the order in which they ran. Only items of one workloop write it.
  final class Log: @unchecked Sendable {
    // SAFETY: items of a workloop never overlap, and the test reads after it has waited for them.
    var names: [String] = []
  }

  @Test("waiting items run by class, and in order of submission within a class")
  func orderByClass() {
    let workloop = DispatchWorkloop(label: "test.workloop")
    let log = Log()
    workloop.suspend()
    let group = DispatchGroup()
    for (name, qos) in [
      ("u1", DispatchQoS.utility), ("d1", .default), ("i1", .userInitiated), ("u2", .utility),
      ("b1", .background), ("i2", .userInitiated), ("d2", .default),
    ] {
      workloop.async(group: group, qos: qos) { log.names.append(name) }
    }
    workloop.resume()
    #expect(empties(group))
    #expect(log.names == ["i1", "i2", "d1", "d2", "u1", "u2", "b1"])
  }

  @Test("a serial queue that targets a workloop keeps its order, and sync on it works")
  func serialChild() {
    let workloop = DispatchWorkloop(label: "test.workloop.parent")
    let child = DispatchQueue(label: "test.workloop.child", target: workloop)
    let log = Log()
    for number in 0..<100 { child.async { log.names.append("\(number)") } }
    child.sync { log.names.append("sync") }
    #expect(log.names == (0..<100).map(String.init) + ["sync"])
  }

  @Test("asyncAndWait on a workloop runs the item, idle or busy, and items never overlap")
  func asyncAndWait() {
    let workloop = DispatchWorkloop(label: "test.workloop.wait")
    let log = Log()
    #expect(workloop.asyncAndWait { 7 } == 7)
    DispatchQueue.concurrentPerform(iterations: 200) { number in
      workloop.async { log.names.append("async") }
      workloop.asyncAndWait { log.names.append("wait") }
    }
    workloop.asyncAndWait {}
    #expect(log.names.count == 400)
  }

  @Test("sync on a workloop traps and says so")
  func syncTraps() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      DispatchWorkloop(label: "test.workloop.sync").sync {}
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("sync on workloop \"test.workloop.sync\""))
  }
}
