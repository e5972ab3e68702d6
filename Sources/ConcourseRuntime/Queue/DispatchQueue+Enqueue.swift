// How an entry is made and reaches its queue, and a queue its target.

/// What a queue's level means for an item that has a level, its own or its submitter's.
enum ServingRule: UInt8, AtomicRepresentable {
  /// The item is served at the queue's level.
  case exact
  /// At the higher of the two.
  case floor
  /// At its own; the queue's level is for items that have none.
  case fallback
}

extension Frame {
  /// The level that an asynchronous submission from the calling thread inherits.
  package static var inheritedLevel: QoSLevel {
    @inline(__always) get {
      guard let frame = current else { return .unspecified }
      return frame.pointee.level.propagated
    }
  }
}

extension NodeMagazine {
  /// A node ready to be pushed.
  /// - Parameters:
  ///   - group: the group to leave when the item has run; the group itself counts the reference.
  ///   - admittedBy: the concurrent queue that has admitted the item.
  @inline(__always)
  package static func make(
    _ work: consuming Work, kind: EntryKind = .item, level: QoSLevel, traits: WorkTraits = [],
    group: Unmanaged<DispatchObject>? = nil, admittedBy: Unmanaged<DispatchQueue>? = nil
  ) -> NodePointer {
    let node = make(
      kind, level: level, traits: traits, group: group?.toOpaque(), admittedBy: admittedBy?.toOpaque())
    node.workPointer.initialize(to: consume work)
    return node
  }
}

extension DispatchQueue {
  /// Submits a client's closure.
  /// - Parameters:
  ///   - asked: its own level, if it has one.
  ///   - group: the group to leave when it has run, which counts it already.
  @inline(__always)
  final func submit(
    _ work: consuming @escaping () -> Void, _ asked: QoSLevel, _ flags: DispatchWorkItemFlags,
    group: Unmanaged<DispatchObject>?
  ) {
    submit(
      NodeMagazine.make(
        .closure(consume work), level: servingLevel(asked, flags),
        traits: flags.contains(.barrier) ? .barrier : [], group: group))
  }

  /// The level at which this queue serves an item.
  @inline(__always)
  package final func servingLevel(_ asked: QoSLevel, _ flags: DispatchWorkItemFlags) -> QoSLevel {
    if asked == .unspecified && flags.isEmpty {
      if level == .unspecified { return Frame.inheritedLevel }
      if rule == .exact { return level }
    }
    return servingLevelSlowly(asked, flags)
  }

  private final func servingLevelSlowly(_ asked: QoSLevel, _ flags: DispatchWorkItemFlags) -> QoSLevel {
    if level != .unspecified && rule == .exact && !flags.contains(.enforceQoS) { return level }
    var own = asked
    if flags.contains(.noQoS) {
      own = .unspecified
    } else if own == .unspecified && !flags.contains(.detached) {
      own = Frame.inheritedLevel
    }
    if rule == .fallback && own != .unspecified { return own }
    return max(own, level)
  }

  // MARK: Enqueueing

  /// Enqueues a node as an item of this queue.
  package final func submit(_ node: NodePointer) {
    if Recording.isOn { ItemRecording.submitted(node, to: self) }
    switch kind {
    case .serial:
      append(node)
    case .workloop:
      requireActive()
      appendByClass(node)
    case .concurrent:
      // An ordinary item with nothing ahead of it bypasses this queue's list.
      if !node.traits.contains(.barrier) && list.isEmpty,
        let place = takeItemPlace()
      {
        admit(node, to: place)
      } else {
        append(node)
      }
    case .global:
      if asGlobal.isOvercommitting { node.pointee.traits.insert(.promised) }
      Runtime.root(at: asGlobal.rootLevel)._withUnsafeGuaranteedRef { $0.submitItem(node) }
    case .main:
      if list.push(node) { MainThread.wake() }
    case .runLoop:
      _ = list.push(node)
    case .source, .group, .semaphore, .channel, .data, .mainQueueSymbol, .emptyDataSymbol, .attribute,
      .otherSymbol:
      Trap.runtimeBug("an item was submitted to an object that is not a queue")
    }
  }

  /// Takes the place of an asynchronous item, if the queue is free.
  @inline(__always)
  private final func takeItemPlace() -> QueueState.ItemPlace? {
    guard PoolSize.hasManyProcessors else {
      return state.takeItemPlace(limit: UInt64(width.value), shares: true)
    }
    return state.addItemPlaceIfFree() ?? takeItemPlaceAgain()
  }

  /// The same, after an addition that found the queue busy, or narrow.
  @inline(never)
  private final func takeItemPlaceAgain() -> QueueState.ItemPlace? {
    carryOut(state.returnItemPlace())
    guard state.snapshot.isNarrow else { return nil }
    return state.takeItemPlace(limit: UInt64(width.value), shares: false)
  }

  /// Appends a node to the list, and enqueues the queue unless another thread will drain it.
  ///
  /// Once linked, the node may run, and a C program's item may release the last reference, the submitter's. So the
  /// code after the link uses a reference of its own.
  @inline(__always)
  final func append(_ node: NodePointer) {
    let level = entryLevel(node)
    // An item without a class is for the default band, also behind one for a lowered band.
    if Int8(truncatingIfNeeded: level.rawValue) > raisesAbove.value { return appendRaising(node, level) }
    let exclusive = kind == .concurrent && node.traits.contains(.barrier)
    let kept = Unmanaged.passUnretained(self)
    guard list.push(node, beforeLink: { wasEmpty in if wasEmpty { _ = kept.retain() } }) else { return }
    noteFirst(kept, level, exclusive: exclusive)
  }

  /// As `append`, for an entry that may have to raise the queue.
  @inline(never)
  private final func appendRaising(_ node: NodePointer, _ level: QoSLevel) {
    let exclusive = kind == .concurrent && node.traits.contains(.barrier)
    let kept = Unmanaged.passRetained(self)
    // Noted as default, the first entry without a class takes the queue from a lowered worker.
    let counted = levelWithoutClass(level)
    // A queue that has run empty has no lowered items any more, so that later ones without a class cost what they always
    // do. A lowered item that comes first after all is noted again, and the entry behind it raises the queue for all.
    let forgets = counted > level && list.isEmpty
    if forgets { raisesAbove.value = 0 } else { noteLevel(level) }
    if list.push(node) { return noteFirst(kept, counted, exclusive: exclusive) }
    if forgets { raisesAbove.value = -1 }
    raise(to: level)
    kept.release()
  }

  /// Notes the first entry of the list.
  /// - Parameter kept: this queue, with a reference.
  @inline(__always)
  private final func noteFirst(_ kept: Unmanaged<DispatchQueue>, _ level: QoSLevel, exclusive: Bool) {
    if case .enqueue(let level) = state.noteWork(level, exclusive: exclusive) {
      enqueue(kept.takeRetainedValue(), level)
    } else if exclusive, case .enqueue(let level) = endApartAsSubmitter() {
      enqueue(kept.takeRetainedValue(), level)
    } else {
      kept.release()
    }
  }

  /// Called before an entry is pushed. An item without a class that another thread appends at the same moment may miss it,
  /// and then waits for the lowered band.
  final func noteLevel(_ level: QoSLevel) {
    if level < .default && level != .unspecified && self.level == .unspecified { raisesAbove.value = -1 }
  }

  /// Lifts the entries ahead of a new one that must not wait for a lower band.
  final func raise(to level: QoSLevel) {
    guard !state.snapshot.isNoted(level.served) else { return }
    carryOut(state.raise(to: levelWithoutClass(level)))
  }

  /// As `append`, for a workloop. An entry never has to raise others in its list.
  private final func appendByClass(_ node: NodePointer) {
    let level = entryLevel(node)
    let kept = Unmanaged.passUnretained(self)
    guard asWorkloop.push(node, beforeLink: { wasEmpty in if wasEmpty { _ = kept.retain() } }) else { return }
    // Noted as default, an entry without a class is seen to be above one for a lowered band.
    let noted = state.snapshot.isNested ? level : level.served
    if case .enqueue(let level) = state.noteWork(noted, exclusive: false) {
      enqueue(kept.takeRetainedValue(), level)
    } else {
      kept.release()
    }
  }

  /// The level at which this queue must be enqueued for a node. A queue that targets this one may have no level of
  /// its own.
  @inline(__always)
  final func entryLevel(_ node: NodePointer) -> QoSLevel { max(node.pointee.level, level) }

  /// Forwards an item for which a place has been taken.
  final func admit(_ node: NodePointer, to place: QueueState.ItemPlace) {
    keep(for: node, by: place.reference)
    forward(node, isNested: place.isNested)
  }

  /// Lets an entry keep this queue until it gives its place back.
  @inline(__always)
  final func keep(for node: NodePointer, by reference: QueueState.ItemPlace.Reference) {
    let queue = Unmanaged.passUnretained(self)
    node.admittedBy = queue
    switch reference {
    case .shared: break
    // No thread can release it before this: the entry's place is not given back yet.
    case .first: _ = queue.retain()
    case .own:
      _ = queue.retain()
      node.pointee.traits.insert(.counted)
    }
  }

  /// Enqueues an admitted item on the target.
  final func forward(_ node: NodePointer, isNested: Bool) {
    let level = entryLevel(node)
    if isNested {
      NodeMagazine.unlink(node)
      submitToTarget(NodeMagazine.make(.redirected(node), level: level))
    } else {
      Runtime.root(at: level)._withUnsafeGuaranteedRef { $0.submitItem(node) }
    }
  }

  /// Carries out the action that a state transition returned.
  @inline(__always)
  final func carryOut(_ wake: QueueState.Wake) {
    if case .enqueue(let level) = wake { enqueue(level) }
  }

  /// Enqueues an entry for this queue on its target.
  /// - Parameter last: whether the entry goes behind what waits there, instead of being next on this worker.
  final func enqueue(_ level: QoSLevel, last: Bool = false) { enqueue(self, level, last: last) }

  /// - Parameter counted: this queue; the entry takes over the reference.
  @inline(__always)
  private final func enqueue(_ counted: consuming DispatchQueue, _ level: QoSLevel, last: Bool = false) {
    // First: the other entry may be the last that keeps the queue.
    if isAwaited { boost(last: last) }
    let entry = NodeMagazine.make(.drain(consume counted), kind: .queue, level: level)
    if state.snapshot.isNested {
      submitToTarget(entry)
    } else {
      Runtime.root(at: level)._withUnsafeGuaranteedRef { root in
        if last { root.push(entry) } else { root.submitQueue(entry) }
      }
    }
  }

  // MARK: C functions

  /// A node for a function and its context, which it stores unchanged.
  @inline(__always)
  package final func makeNode(
    _ context: UnsafeMutableRawPointer?, _ function: ContextFunction, barrier: Bool,
    group: Unmanaged<DispatchObject>?
  ) -> NodePointer {
    NodeMagazine.make(
      .function(function, context), level: servingLevel(.unspecified, []), traits: barrier ? .barrier : [],
      group: group)
  }

  /// As `async`. Matching C functions: `dispatch_async_f`, `dispatch_barrier_async_f`.
  package final func asyncFunction(
    _ context: UnsafeMutableRawPointer?, _ function: ContextFunction, barrier: Bool
  ) {
    submit(makeNode(context, function, barrier: barrier, group: nil))
  }

  /// As `async`, with a QoS class. Matching C function: `dispatch_async_enforce_qos_class_f`.
  package final func asyncFunction(
    qos: DispatchQoS.QoSClass, flags: DispatchWorkItemFlags, _ context: UnsafeMutableRawPointer?,
    _ function: ContextFunction
  ) {
    submit(
      NodeMagazine.make(
        .function(function, context), level: servingLevel(QoSLevel(qos), flags),
        traits: flags.contains(.barrier) ? .barrier : []))
  }

  // MARK: The engine's own items

  /// Submits the engine's own closure: recordings do not show it.
  package final func asyncUnrecorded(execute work: consuming @escaping () -> Void) {
    submit(NodeMagazine.make(.engine(consume work), level: servingLevel(.unspecified, [])))
  }

  /// Submits a closure that runs a client's code, in the class of the submitter.
  final func submit(_ work: @escaping () -> Void) {
    submit(NodeMagazine.make(.closure(work), level: servingLevel(.unspecified, [])))
  }
}
