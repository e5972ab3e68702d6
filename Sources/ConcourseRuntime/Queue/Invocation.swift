internal import CConcourse

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
    let group = node.group
    NodeMagazine.recycle(node)
    if let group { begin(itemOf: group) }
    run(work, from: node, isInPlace: false)
    if let group { end(itemOf: group) }
  }

  /// As `perform`, for a node that is still the oldest of a list. The caller recycles it later.
  @inline(__always)
  static func performInPlace(_ node: NodePointer) {
    if let group = node.group { begin(itemOf: group) }
    run(node.takeWork(), from: node, isInPlace: true)
    if let group = node.group { end(itemOf: group) }
  }

  /// Notes that the calling thread begins an item of the group. An item that this one runs inside itself replaces the
  /// note, and removes it.
  @inline(__always)
  private static func begin(itemOf group: Unmanaged<DispatchObject>) {
    CurrentThread.state.pointee.group = group.toOpaque()
  }

  @inline(__always)
  private static func end(itemOf group: Unmanaged<DispatchObject>) {
    CurrentThread.state.pointee.group = nil
    group._withUnsafeGuaranteedRef { $0.itemEnded() }
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
    case .waiter: rejectWork()
    case .retarget: rejectWork()
    }
  }

  private static func rejectWork() {
    Trap.runtimeBug("an entry for the owner of a queue was run as an item")
  }

  /// Runs an item that a concurrent queue has admitted, then gives up the place of the entry that has arrived.
  static func runAdmitted(_ arrival: NodePointer) {
    let queue = arrival.admittedBy!
    // Read before the exchange: an item that is exchanged for an older one belongs to the next arrival.
    let traits = arrival.traits
    // Without an item, the queue holds it back until the resume.
    if let node = queue._withUnsafeGuaranteedRef({ $0.itemToRun(for: arrival) }) {
      if traits.contains(.ticket) {
        _ = arrival.takeWork()
        NodeMagazine.recycle(arrival)
      }
      let frame = Frame(queue: queue, parent: Frame.current, exclusive: false, level: node.pointee.level)
      Frame.run(frame) { perform(node) }
    }
    DispatchQueue.giveUpPlace(ofItemOn: queue, isCounted: traits.contains(.counted))
  }

  /// Runs an item of a global queue.
  @inline(never)
  fileprivate static func runGlobal(_ node: NodePointer, _ queue: UnsafeMutableRawPointer) {
    let frame = Frame(queue: .fromOpaque(queue), parent: nil, exclusive: false, level: node.pointee.level)
    Frame.run(frame) { perform(node) }
  }
}

/// Runs an item of a global queue, or one that a concurrent queue has admitted. Called by workers.
// SAFETY: the pool passes entries that `NodeMagazine.make` of DispatchQueue+Enqueue.swift has made, and the client that
// `GlobalQueue` has given to their root.
@c(concourse_run_item)
func runItem(_ entry: UnsafeMutableRawPointer, _ globalQueue: UnsafeMutableRawPointer?) {
  let node = entry.assumingMemoryBound(to: WorkNode.self)
  // Both are called last: an admitted item needs no room for the frame of the other.
  if node.admittedBy != nil { return Invocation.runAdmitted(node) }
  Invocation.runGlobal(node, globalQueue!)
}
