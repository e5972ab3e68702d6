internal import ConcourseRuntime

// What C programs pass to be told of input and output. Data in a call is the callee's only during the call.

/// The end of a channel: with a context or itself, and an errno.
typealias CleanupFunction = @convention(c) (UnsafeMutableRawPointer?, Int32) -> Void
/// A single operation: with a context or itself, data, and an errno.
typealias OnceFunction = @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int32) -> Void
/// A channel's operation: with a context or itself, whether this is the last call, data, and an errno.
typealias PiecesFunction =
  @convention(c) (
    UnsafeMutableRawPointer?, Bool, UnsafeMutableRawPointer?, Int32
  ) -> Void

/// A function with its first argument: a context, or the block whose function it is.
struct IOCallback<Function> {
  private let function: Function
  private let context: Reference?
  /// Released with the last closure made of this.
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

/// NULL for no data at all, which is not the same as empty data.
private func lend(_ data: DispatchData?, _ body: (Reference?) -> Void) {
  let object = data?.shown
  withExtendedLifetime(object) { body(object?.reference) }
}
