// The handlers of clients. Some are called through a closure of the engine's or of the C interface. Recordings show the
// client's own code, so its address is kept beside the closure.

/// The handler of an operation.
package struct OperationHandler {
  package typealias Call = (_ isLast: Bool, _ data: DispatchData?, _ error: Int32) -> Void

  let call: Call
  /// The address of the client's code.
  let code: UInt

  package init(_ call: @escaping Call, code: UInt) { (self.call, self.code) = (call, code) }

  init(_ call: @escaping Call) {
    struct Box { let call: Call }
    self.init(call, code: codeAddress(in: Box(call: call)))
  }

  /// Of a single read.
  init(reading call: @escaping (_ data: DispatchData, _ error: Int32) -> Void) {
    struct Box { let call: (DispatchData, Int32) -> Void }
    self.init({ call($1 ?? .empty, $2) }, code: codeAddress(in: Box(call: call)))
  }

  /// Of a single write.
  init(writing call: @escaping (_ data: DispatchData?, _ error: Int32) -> Void) {
    struct Box { let call: (DispatchData?, Int32) -> Void }
    self.init({ call($1, $2) }, code: codeAddress(in: Box(call: call)))
  }
}

/// The cleanup handler of a channel.
package struct CleanupHandler {
  package typealias Call = (_ error: Int32) -> Void

  let call: Call
  /// The address of the client's code.
  let code: UInt

  package init(_ call: @escaping Call, code: UInt) { (self.call, self.code) = (call, code) }

  init(_ call: @escaping Call) {
    struct Box { let call: Call }
    self.init(call, code: codeAddress(in: Box(call: call)))
  }
}

/// The code of the closure in a structure. As a generic argument itself, the closure would be wrapped in another one.
private func codeAddress<Box>(in box: Box) -> UInt {
  // SAFETY: a closure is the address of its code and that of its context, and each caller's structure has only one.
  unsafeBitCast(box, to: (UInt, UInt).self).0
}
