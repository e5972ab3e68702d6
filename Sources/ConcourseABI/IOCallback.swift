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

extension IOCallback {
  /// The address of the client's code.
  // SAFETY: a C function is its address.
  private var code: UInt { unsafeBitCast(function, to: UInt.self) }

  /// The function, as a value: the compiler of Swift 6.2 fails at a call of the generic field itself.
  private var call: Function { function }
}

extension IOCallback<CleanupFunction> {
  var handler: CleanupHandler { CleanupHandler({ call(context, $0) }, code: code) }
}

extension IOCallback<OnceFunction> {
  /// - Parameter none: what the function gets if there is no data.
  func handler(none: DispatchData? = nil) -> OperationHandler {
    OperationHandler({ _, data, error in lend(data ?? none) { call(context, $0, error) } }, code: code)
  }
}

extension IOCallback<PiecesFunction> {
  var handler: OperationHandler {
    OperationHandler(
      { isLast, data, error in lend(data) { call(context, isLast, $0, error) } }, code: code)
  }
}

/// Passes NULL for no data, which differs from empty data.
private func lend(_ data: DispatchData?, _ body: (Reference?) -> Void) {
  let object = data?.shown
  withExtendedLifetime(object) { body(object?.reference) }
}
