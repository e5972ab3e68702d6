internal import CConcourse

/// Records the items of queues (see Recording).
///
/// A submission and a start are the same item if they name the same node, and no other start of that node lies between
/// them.
package enum ItemRecording {
  /// Records that `node` is submitted to `queue`, if it is a client's item. Call before other threads know the node.
  @inline(never)
  static func submitted(_ node: NodePointer, to queue: DispatchQueue) {
    guard let function = code(of: node) else { return }
    name(queue)
    Recording.submitted(queue.address, node: UInt(bitPattern: node), function: function)
  }

  /// Records that `node`, a client's item, is to be submitted to `queue` later.
  @inline(never)
  package static func scheduled(_ node: NodePointer, to queue: DispatchQueue) {
    guard let function = code(of: node) else { return }
    name(queue)
    Recording.scheduled(queue.address, node: UInt(bitPattern: node), function: function)
  }

  /// Runs an item of the innermost frame's queue, between a record of its start and one of its end.
  /// - Parameter node: nil for a handler, which no node stands for.
  @inline(never)
  package static func run(_ function: UInt, from node: NodePointer?, _ body: () -> Void) {
    guard let queue = Frame.current?.pointee.queue else { return body() }
    queue._withUnsafeGuaranteedRef { name($0) }
    let (queueAddress, nodeAddress) = (UInt(bitPattern: queue.toOpaque()), UInt(bitPattern: node))
    Recording.started(queueAddress, node: nodeAddress, function: function)
    body()
    Recording.ended(queueAddress, node: nodeAddress, function: function)
  }

  /// Names a queue that the calling thread is about to wait for.
  @inline(never)
  static func waits(for queue: DispatchQueue) { name(queue) }

  /// Records the name of a queue before the first event that names the queue.
  @inline(__always)
  private static func name(_ queue: DispatchQueue) {
    if !queue.isNamedInRecording.value { nameNow(queue) }
  }

  /// Records who makes a queue that has no label. Called by its initializer.
  @inline(never)
  static func made(_ queue: DispatchQueue) {
    if queue.label.isEmpty { nameNow(queue, isMade: true) }
  }

  @inline(never)
  private static func nameNow(_ queue: DispatchQueue, isMade: Bool = false) {
    // Two threads may both do it; the entries are equal.
    queue.isNamedInRecording.value = Recording.name(
      queue.address, queue.label, kind: queue.kind.rawValue,
      target: UInt(bitPattern: queue.target?.toOpaque()), isMade: isMade)
  }

  // MARK: Code

  /// The code of a client's item; nil if the node is the engine's.
  @inline(__always)
  private static func code(of node: NodePointer) -> UInt? {
    switch node.workPointer.pointee {
    case .closure(let body): code(of: body)
    case .function(let body, let context): itemCode(of: body, context)
    case .item(let item): item.codeAddress
    case .engine: nil
    case .drain: nil
    case .waiter: nil
    case .retarget: nil
    case .redirected: nil
    }
  }

  /// Passed as itself, a closure would be wrapped in another one.
  private struct Closure {
    let body: () -> Void
  }

  /// The code of a closure.
  package static func code(of body: @escaping () -> Void) -> UInt {
    // SAFETY: a closure is the address of its code and that of its context.
    unsafeBitCast(Closure(body: body), to: (UInt, UInt).self).0
  }

  /// The code of a function or, if it only calls a block, of the block.
  @inline(__always)
  package static func code(of function: ContextFunction, _ context: UnsafeMutableRawPointer?) -> UInt {
    // SAFETY: a C function is its address.
    UInt(concourse_item_function(UInt64(unsafeBitCast(function, to: UInt.self)), context))
  }

  /// The code of a block or, if it only calls a Swift closure, of the closure.
  package static func code(ofBlock block: UnsafeRawPointer) -> UInt { UInt(concourse_block_function(block)) }

  /// As `code`, for an item: of a job of Swift Concurrency, task and priority.
  static func itemCode(of function: ContextFunction, _ context: UnsafeMutableRawPointer?) -> UInt {
    UInt(concourse_job_code(UInt64(code(of: function, context)), context))
  }
}

extension DispatchQueue {
  fileprivate final var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }
}
