internal import CConcourseABI
internal import ConcourseRuntime

/// A block as the C interface passes it: called through its own function, with itself as the context.
struct Block {
  let reference: Reference

  /// A block that a caller must pass.
  @inline(__always)
  init(_ reference: Reference?, _ function: StaticString) {
    guard let reference else { Reject.null(function, "block") }
    self.reference = reference
  }

  @inline(__always)
  init(_ reference: Reference) { self.reference = reference }

  /// What calls it, with the block as the argument.
  var invoke: ContextFunction {
    @inline(__always) get { head.pointee.invoke }
  }

  private var head: UnsafeMutablePointer<concourse_block> {
    // SAFETY: every block begins like this.
    @inline(__always) get { reference.assumingMemoryBound(to: concourse_block.self) }
  }

  /// The same function with other arguments.
  // SAFETY: the caller names the type that the interface gives this block.
  @inline(__always)
  func invoke<Function>(as type: Function.Type) -> Function { unsafeBitCast(head.pointee.invoke, to: type) }

  /// A copy, or another reference to a block that is a copy; `release` gives it back.
  @inline(__always)
  func copy() -> Reference {
    guard let copy = _Block_copy(reference) else { ClientBug.outOfMemory("copying a block") }
    return copy
  }

  /// The work item that the block stands for, if `dispatch_block_create` made it.
  var item: Unmanaged<DispatchWorkItem>? {
    // SAFETY: `make` put it there, retained by the block.
    @inline(__always) get { concourse_block_object(reference).map { Unmanaged.fromOpaque($0) } }
  }

  /// A block that stands for `item`; nil when there is no memory.
  static func make(for item: DispatchWorkItem) -> Reference? {
    let retained = Unmanaged.passRetained(item)
    let block = concourse_block_create(
      retained.toOpaque(),
      { Unmanaged<DispatchWorkItem>.fromOpaque($0!)._withUnsafeGuaranteedRef { $0.perform() } },
      { Unmanaged<DispatchWorkItem>.fromOpaque($0).release() })
    if block == nil { retained.release() }
    return block
  }

  /// A closure that calls a copy of the block, which goes with the closure.
  func closure() -> () -> Void {
    let owned = OwnedBlock(copying: self)
    return { owned.block.invoke(owned.block.reference) }
  }

  /// For a copy that is called once.
  static let callAndRelease: ContextFunction = { reference in
    Block(reference!).invoke(reference)
    _Block_release(reference!)
  }
}

/// A copy of a block, released with this object.
// SAFETY: blocks may be called and released from any thread.
final class OwnedBlock: @unchecked Sendable {
  let block: Block

  init(copying block: Block) { self.block = Block(block.copy()) }

  deinit { _Block_release(block.reference) }
}
