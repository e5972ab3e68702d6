/// A function as the C interface passes it, for the context that goes with it.
package typealias ContextFunction = @convention(c) (UnsafeMutableRawPointer?) -> Void

extension DispatchObject {
  /// What `dispatch_set_context` has attached; nothing can be attached to global queues and the main queue.
  package final var context: UnsafeMutableRawPointer? {
    get { objectExtrasIfAny?.currentContext }
    set {
      if kind == .global || kind == .main || newValue == nil && objectExtrasIfAny == nil { return }
      objectExtras.currentContext = newValue
    }
  }

  /// Sets what to call with the context once the object and its handlers have gone.
  package final func setFinalizer(_ function: ContextFunction?) {
    if kind == .global || kind == .main || function == nil && objectExtrasIfAny == nil { return }
    objectExtras.setFinalizer(function)
  }
}
