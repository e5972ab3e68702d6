internal import CConcourseABI
internal import ConcourseEvents

/// A block as the C interface passes it: a function that takes the block as its context.
struct Block {
  let reference: Reference

  /// A required block argument; NULL traps.
  @inline(__always)
  init(_ reference: Reference?, _ function: StaticString) {
    guard let reference else { Reject.null(function, "block") }
    self.reference = reference
  }

  @inline(__always)
  init(_ reference: Reference) { self.reference = reference }

  /// The function that runs the block, with the block as its argument.
  var invoke: ContextFunction {
    @inline(__always) get { head.pointee.invoke }
  }

  private var head: UnsafeMutablePointer<concourse_block> {
    // SAFETY: every block begins with this header.
    @inline(__always) get { reference.assumingMemoryBound(to: concourse_block.self) }
  }

  /// The same function with a different signature.
  // SAFETY: the caller passes the function type that the interface declares for this block.
  @inline(__always)
  func invoke<Function>(as type: Function.Type) -> Function { unsafeBitCast(head.pointee.invoke, to: type) }

  /// A copy on the heap, or one more reference if the block is on the heap already; release it with `_Block_release`.
  @inline(__always)
  func copy() -> Reference {
    guard let copy = _Block_copy(reference) else { ClientBug.outOfMemory("copying a block") }
    return copy
  }

  /// The block's work item, if `dispatch_block_create` made the block.
  var item: Unmanaged<DispatchWorkItem>? {
    // SAFETY: `make` stored the object, and the block retains it.
    @inline(__always) get { concourse_block_object(reference).map { Unmanaged.fromOpaque($0) } }
  }

  /// A block that stands for `item`; nil when memory is exhausted.
  static func make(for item: consuming DispatchWorkItem) -> Reference? {
    let retained = Unmanaged.passRetained(item)
    let block = concourse_block_create(
      retained.toOpaque(),
      { Unmanaged<DispatchWorkItem>.fromOpaque($0!)._withUnsafeGuaranteedRef { $0.perform() } },
      { Unmanaged<DispatchWorkItem>.fromOpaque($0).release() })
    if block == nil { retained.release() }
    return block
  }

  /// Releases a copy.
  static let release: ContextFunction = { _Block_release($0!) }

  /// Calls a copy once and releases it.
  static let callAndRelease: ContextFunction = callBlock
}

// The engine knows it by this name, and records the block's function in its place.
@c(concourse_call_block)
func callBlock(_ block: UnsafeMutableRawPointer?) {
  Block(block!).invoke(block)
  _Block_release(block!)
}

/// A copy of a block, released with this object.
// SAFETY: blocks may be called and released from any thread.
final class OwnedBlock: ClientBlock, @unchecked Sendable {
  let block: Block

  init(copying block: Block) { self.block = Block(block.copy()) }

  var code: UInt { ItemRecording.code(ofBlock: block.reference) }

  func call() { block.invoke(block.reference) }

  deinit { _Block_release(block.reference) }
}
