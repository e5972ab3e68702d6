import Concourse
import Foundation
import Testing

/// Our queues where Foundation wants the toolchain's, and the reverse.
@Suite("Bridged queues")
struct DispatchQueueBridgeTests {
  @Test("a queue comes back as itself")
  func roundTrip() {
    let queues = [
      Concourse::DispatchQueue(label: "serial"), Concourse::DispatchQueue(label: "", attributes: .concurrent),
      Concourse::DispatchQueue.main, Concourse::DispatchQueue.global(qos: .utility),
    ]
    for queue in queues {
      let bridged = queue.bridged
      #expect(bridged.label == queue.label)
      #expect(Concourse::DispatchQueue.bridging(bridged) === queue)
    }
  }

  @Test("each of the toolchain's queues has one of ours behind it")
  func native() {
    let queue = Dispatch::DispatchQueue(label: "theirs", qos: .utility)
    let native = Concourse::DispatchQueue.bridging(queue)
    #expect(native.label == "theirs")
    #expect(native.qos == .utility)
    native.sync { Dispatch::dispatchPrecondition(condition: .onQueue(queue)) }
    queue.sync { Concourse::dispatchPrecondition(condition: .onQueue(native)) }
  }

  @Test("a bridged queue keeps its queue alive, and releases it")
  func lifetime() {
    weak var watched: Concourse::DispatchQueue?
    var bridged: Dispatch::DispatchQueue?
    do {
      let queue = Concourse::DispatchQueue(label: "kept")
      watched = queue
      bridged = queue.bridged
    }
    #expect(watched != nil)
    bridged?.sync {}
    bridged = nil
    #expect(watched == nil)
  }

  @Test("an operation queue runs its operations on one of our queues")
  func operations() {
    let queue = Concourse::DispatchQueue(label: "under operations")
    let operations = OperationQueue()
    operations.underlyingQueue = queue.bridged
    let label = Label()
    operations.addOperation { label.value = Concourse::DispatchQueue.currentLabel }
    operations.waitUntilAllOperationsAreFinished()
    // Foundation adds its own queue above; only the end of the hierarchy counts.
    operations.addOperation { Concourse::dispatchPrecondition(condition: .onQueue(queue)) }
    operations.waitUntilAllOperationsAreFinished()
    #expect(!label.value.isEmpty)
  }

  private final class Label: @unchecked Sendable {
    // SAFETY: written before the operations are waited for, read afterwards.
    var value = ""
  }
}
