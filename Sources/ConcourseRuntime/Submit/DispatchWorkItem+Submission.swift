// The ways of a work item to a queue.

extension DispatchQueue {
  /// Submits a work item and returns at once.
  ///
  /// The item may be submitted again, and counts each time. Matching C function: `dispatch_async`.
  /// - Parameter workItem: the item.
  public final func async(execute workItem: DispatchWorkItem) {
    submit(workItem.makeNode(for: self, group: nil))
  }

  /// Submits a work item that belongs to `group` until it has run or been skipped because of its
  /// cancellation. Matching C function: `dispatch_group_async`.
  /// - Parameters:
  ///   - group: the group that the item joins now and leaves when it has run.
  ///   - workItem: the item.
  public final func async(group: DispatchGroup, execute workItem: DispatchWorkItem) {
    submit(workItem.makeNode(for: self, group: group))
  }

  /// As `async(execute:)`. `barrier` makes the item a barrier even if its flags do not. Matching C function:
  /// `dispatch_barrier_async` with a block of `dispatch_block_create`.
  package final func async(execute item: DispatchWorkItem, barrier: Bool) {
    submit(item.makeNode(for: self, group: nil, barrier: barrier))
  }

  /// Runs a work item in its turn on this queue, and returns when it has run or been skipped because of
  /// its cancellation. Matching C function: `dispatch_sync`.
  /// - Parameter workItem: the item; it runs on the caller.
  public final func sync(execute workItem: DispatchWorkItem) {
    sync(flags: workItem.flags) { workItem.execute() }
  }

  /// Submits a work item and waits until it has run or been skipped because of its cancellation.
  /// Matching C function: `dispatch_async_and_wait`.
  /// - Parameter workItem: the item.
  public final func asyncAndWait(execute workItem: DispatchWorkItem) {
    wait(barrier: workItem.flags.contains(.barrier)) { workItem.execute() }
  }

  /// As `DispatchWorkItem.notify`. Matching C function: `dispatch_block_notify`.
  package final func notifyFunction(
    of item: DispatchWorkItem, _ context: UnsafeMutableRawPointer?, _ function: ContextFunction
  ) {
    item.notify(self, makeNode(context, function, barrier: false, group: nil))
  }
}

extension DispatchGroup {
  /// As `notify(qos:flags:queue:execute:)`, with a work item. Matching C function: `dispatch_group_notify`.
  public func notify(queue: DispatchQueue, work: DispatchWorkItem) {
    notify(queue, work.makeNode(for: queue, group: nil))
  }
}
