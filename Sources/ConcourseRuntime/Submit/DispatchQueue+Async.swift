extension DispatchQueue {
  /// Submits a closure and returns at once.
  ///
  /// Items of one queue start in the order of their submission. The queue and everything the closure
  /// captures stay alive until it has run. On a global or serial queue `.barrier` changes nothing. O(1),
  /// and free of system calls unless a sleeping worker must be woken. Matching C functions:
  /// `dispatch_async`, `dispatch_group_async`, `dispatch_barrier_async`.
  ///
  /// - Parameters:
  ///   - group: a group that the item belongs to until it has returned.
  ///   - qos: the class to serve the item at; `.unspecified` means that of the queue or, failing that,
  ///     of the submitting item.
  ///   - flags: barrier and QoS rules.
  ///   - work: the closure; it runs on a pool thread, or on the main thread for the main queue.
  public final func async(
    group: DispatchGroup? = nil, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
    execute work: consuming @escaping @Sendable () -> Void
  ) {
    submit(consume work, QoSLevel(qos.qosClass), flags, group: group?.enterForItem())
  }

  /// As `async`, for closures that are not marked `@Sendable`: the caller is responsible for their safety.
  public final func asyncUnsafe(
    group: DispatchGroup? = nil, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
    execute work: consuming @escaping () -> Void
  ) {
    submit(consume work, QoSLevel(qos.qosClass), flags, group: group?.enterForItem())
  }
}

// Submission for the C interface: a function and its context instead of a closure. What has neither group nor
// notification goes to the queue at once (Queue/DispatchQueue+Enqueue.swift).

extension DispatchQueue {
  /// As `async(group:)`. Matching C function: `dispatch_group_async_f`.
  package final func asyncFunction(
    group: DispatchGroup, _ context: UnsafeMutableRawPointer?, _ function: ContextFunction
  ) {
    submit(makeNode(context, function, barrier: false, group: group.enterForItem()))
  }

  /// As `DispatchGroup.notify`. Matching C function: `dispatch_group_notify_f`.
  package final func notifyFunction(
    of group: DispatchGroup, _ context: UnsafeMutableRawPointer?, _ function: ContextFunction
  ) {
    group.notify(self, makeNode(context, function, barrier: false, group: nil))
  }
}
