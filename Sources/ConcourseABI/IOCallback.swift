internal import ConcourseEvents

// The I/O callbacks of C programs. A callback borrows its data object for the duration of the call.

/// A channel's cleanup handler: context or block, errno.
typealias CleanupFunction = @convention(c) (UnsafeMutableRawPointer?, Int32) -> Void
/// The handler of a single operation: context or block, data, errno.
typealias OnceFunction = @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int32) -> Void
/// The handler of a channel's operation: context or block, whether this is the last call, data, errno.
typealias PiecesFunction =
  @convention(c) (
    UnsafeMutableRawPointer?, Bool, UnsafeMutableRawPointer?, Int32
  ) -> Void

/// A function and its first argument: a context, or the block that the function belongs to.
struct IOCallback<Function> {
  private let function: Function
  private let context: Reference?
  /// Released with the last closure made from this value.
  private let owner: OwnedBlock?

  init(_ function: Function, _ context: Reference?) {
    self.function = function
    self.context = context
    owner = nil
  }

  /// A copy of a block.
  init(_ block: Block) {
    let owner = OwnedBlock(copying: block)
    function = owner.block.invoke(as: Function.self)
    context = owner.block.reference
    self.owner = owner
  }
}

extension IOCallback<CleanupFunction> {
  var closure: (Int32) -> Void { { function(context, $0) } }
}

extension IOCallback<OnceFunction> {
  var closure: (DispatchData?, Int32) -> Void {
    { data, error in lend(data) { function(context, $0, error) } }
  }
}

extension IOCallback<PiecesFunction> {
  var closure: (Bool, DispatchData?, Int32) -> Void {
    { isLast, data, error in lend(data) { function(context, isLast, $0, error) } }
  }
}

/// Passes NULL for no data, which differs from empty data.
private func lend(_ data: DispatchData?, _ body: (Reference?) -> Void) {
  let object = data?.shown
  withExtendedLifetime(object) { body(object?.reference) }
}
