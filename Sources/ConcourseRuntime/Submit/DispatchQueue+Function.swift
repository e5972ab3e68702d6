// Submission for the C interface: a function and its context instead of a closure, which lie in the node as they
// are.

extension DispatchQueue {
  /// As `async`. Matching C functions: `dispatch_async_f`, `dispatch_barrier_async_f`.
  package final func asyncFunction(
    _ context: UnsafeMutableRawPointer?, _ function: ContextFunction, barrier: Bool
  ) {
    submit(makeNode(context, function, barrier: barrier, group: nil))
  }

  /// As `async(execute:)`; with `barrier` also an item that is none by itself runs alone. Matching C function:
  /// `dispatch_barrier_async` with a block of `dispatch_block_create`.
  package final func async(execute item: DispatchWorkItem, barrier: Bool) {
    submit(item.makeNode(for: self, group: nil, barrier: barrier))
  }

  /// As `async(group:)`. Matching C function: `dispatch_group_async_f`.
  package final func asyncFunction(
    group: DispatchGroup, _ context: UnsafeMutableRawPointer?, _ function: ContextFunction
  ) {
    submit(makeNode(context, function, barrier: false, group: group.enterForItem()))
  }

  /// As `async`, at a class of its own. Matching C function: `dispatch_async_enforce_qos_class_f`.
  package final func asyncFunction(
    qos: DispatchQoS.QoSClass, flags: DispatchWorkItemFlags, _ context: UnsafeMutableRawPointer?,
    _ function: ContextFunction
  ) {
    submit(
      NodeMagazine.make(
        .function(function, context), level: servingLevel(QoSLevel(qos), flags),
        traits: flags.contains(.barrier) ? .barrier : []))
  }

  /// As `DispatchGroup.notify`. Matching C function: `dispatch_group_notify_f`.
  package final func notifyFunction(
    of group: DispatchGroup, _ context: UnsafeMutableRawPointer?, _ function: ContextFunction
  ) {
    group.notify(self, makeNode(context, function, barrier: false, group: nil))
  }

  /// As `DispatchWorkItem.notify`. Matching C function: `dispatch_block_notify`.
  package final func notifyFunction(
    of item: DispatchWorkItem, _ context: UnsafeMutableRawPointer?, _ function: ContextFunction
  ) {
    item.notify(self, makeNode(context, function, barrier: false, group: nil))
  }

  @inline(__always)
  final func makeNode(
    _ context: UnsafeMutableRawPointer?, _ function: ContextFunction, barrier: Bool,
    group: Unmanaged<DispatchGroup>?
  ) -> NodePointer {
    NodeMagazine.make(
      .function(function, context), level: servingLevel(.unspecified, []), traits: barrier ? .barrier : [],
      group: group)
  }
}
