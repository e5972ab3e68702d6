/// A function as the C interface passes it, for the context that goes with it.
package typealias ContextFunction = @convention(c) (UnsafeMutableRawPointer?) -> Void

extension DispatchObject {
  /// What `dispatch_set_context` has attached; nothing can be attached to global queues and the main queue.
  package final var context: UnsafeMutableRawPointer? {
    get { uncountedExtrasIfAny?._withUnsafeGuaranteedRef { $0.currentContext } }
    set {
      if kind == .global || kind == .main || newValue == nil && uncountedExtrasIfAny == nil { return }
      uncountedExtras._withUnsafeGuaranteedRef { $0.currentContext = newValue }
    }
  }

  /// Sets what to call with the context once the object and its handlers have gone.
  package final func setFinalizer(_ function: ContextFunction?) {
    if kind == .global || kind == .main || function == nil && uncountedExtrasIfAny == nil { return }
    uncountedExtras._withUnsafeGuaranteedRef { $0.setFinalizer(function) }
  }
}
