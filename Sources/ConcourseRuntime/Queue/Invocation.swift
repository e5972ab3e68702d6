/// Runs the work of nodes. Synchronous bodies run in their caller instead.
enum Invocation {
  /// Runs the work of `node` on the calling thread, then leaves its group. The node is recycled first: an item may
  /// take long, or never end.
  ///
  /// The closure and what it captured are released before the group is left, so a thread that waits for the group
  /// finds them gone.
  @inline(__always)
  static func perform(_ node: NodePointer) {
    let work = node.takeWork()
    let group = node.pointee.group
    NodeMagazine.recycle(node)
    if let group { DispatchGroup.beginItem(of: group) }
    run(work, from: node, isInPlace: false)
    if let group { DispatchGroup.endItem(of: group) }
  }

  /// As `perform`, for a node that is still the oldest of a list. The caller recycles it later.
  @inline(__always)
  static func performInPlace(_ node: NodePointer) {
    if let group = node.pointee.group { DispatchGroup.beginItem(of: group) }
    run(node.takeWork(), from: node, isInPlace: true)
    if let group = node.pointee.group { DispatchGroup.endItem(of: group) }
  }

  /// - Parameters:
  ///   - node: where the work was; only its address counts.
  ///   - isInPlace: whether `node` is still in a list.
  @inline(__always)
  private static func run(_ work: consuming Work, from node: NodePointer, isInPlace: Bool) {
    switch work {
    case .closure(let body):
      if Recording.isOn { ItemRecording.run(ItemRecording.code(of: body), from: node, body) } else { body() }
    case .engine(let body): body()
    case .function(let function, let context):
      if Recording.isOn {
        ItemRecording.run(ItemRecording.itemCode(of: function, context), from: node) { function(context) }
      } else {
        function(context)
      }
    case .item(let item):
      if Recording.isOn {
        ItemRecording.run(item.codeAddress, from: node, item.execute)
      } else {
        item.execute()
      }
    case .drain(let queue): queue.drain(at: isInPlace ? node : nil)
    case .redirected(let node): runAdmitted(node)
    case .boosted(let level): Runtime.root(at: level)._withUnsafeGuaranteedRef { $0.runBoosted() }
    case .waiter: rejectWork()
    case .retarget: rejectWork()
    }
  }

  /// Runs an entry that a worker has taken from a root; without one, a queue that the worker kept.
  @inline(__always)
  static func performEntry(_ node: NodePointer, of root: Unmanaged<RootQueue>?) {
    if node.pointee.admittedBy != nil {
      runAdmitted(node)
    } else if node.isQueue {
      perform(node)
    } else {
      let frame = Frame(
        queue: root!._withUnsafeGuaranteedRef { $0.queue }, parent: nil, exclusive: false,
        level: node.pointee.level)
      Frame.run(frame) { perform(node) }
    }
  }

  private static func rejectWork() {
    Trap.runtimeBug("an entry for the owner of a queue was run as an item")
  }

  /// Runs an item that a concurrent queue has admitted, then gives up its reader place.
  static func runAdmitted(_ arrival: NodePointer) {
    let queue = arrival.pointee.admittedBy!
    // Read before the exchange: an item that is exchanged for an older one belongs to the next arrival.
    let isTicket = arrival.traits.contains(.ticket)
    guard let node = queue._withUnsafeGuaranteedRef({ $0.itemToRun(for: arrival) }) else {
      // Held back until the queue resumes, without a reference.
      return queue.release()
    }
    if isTicket {
      _ = arrival.takeWork()
      NodeMagazine.recycle(arrival)
      // The ticket's reference; the item has its own.
      queue.release()
    }
    let frame = Frame(queue: queue, parent: Frame.current, exclusive: false, level: node.pointee.level)
    Frame.run(frame) { perform(node) }
    queue._withUnsafeGuaranteedRef { $0.giveUpPlace() }
    queue.release()
  }
}
