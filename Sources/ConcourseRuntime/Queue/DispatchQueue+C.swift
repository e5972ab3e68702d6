internal import Glibc
import Synchronization

// What only the C interface needs of queues: labels as C strings, values by pointers.

extension DispatchQueue {
  /// Makes a queue for C. `mayChangeTarget`: also while it is active. `overcommits`: whether it is promised a thread;
  /// nil leaves that to the target.
  package convenience init(
    cLabel: UnsafePointer<CChar>?, isConcurrent: Bool, qos: DispatchQoS, isInactive: Bool,
    target: DispatchQueue?, mayChangeTarget: Bool, overcommits: Bool? = nil
  ) {
    let target = overcommits.map { target?.asTarget(overcommitting: $0) } ?? target
    self.init(
      kind: isConcurrent ? .concurrent : .serial, label: QueueName(copying: cLabel), qos: qos,
      attributes: isInactive ? .initiallyInactive : [], target: target, mayChangeTarget: mayChangeTarget,
      overcommits: overcommits == true)
  }

  /// Makes a queue without attributes, or with that of a concurrent queue only. Most queues of C programs are such, so
  /// they do not pay for what the others need.
  package static func plain(
    cLabel: UnsafePointer<CChar>?, isConcurrent: Bool, target: DispatchQueue?, mayChangeTarget: Bool
  ) -> DispatchQueue {
    DispatchQueue(
      kind: isConcurrent ? .concurrent : .serial, label: QueueName(copying: cLabel), qos: .unspecified,
      attributes: [], target: target, mayChangeTarget: mayChangeTarget)
  }

  /// The empty string.
  // SAFETY: never written and never freed.
  package nonisolated(unsafe) static let noLabel = UnsafePointer(strdup("")!)

  /// The offset of `name`, behind the object's header and its own fields, the state word, the list and the target.
  private static var placeOfName: Int { 64 }

  /// The label as a C string that lives as long as the queue.
  package final var cLabel: UnsafePointer<CChar> {
    // A C program may have set another.
    if let other = extrasIfAny?.otherLabel { return other }
    switch name {
    case .cString(let text): return UnsafePointer(text)
    case .short:
      // SAFETY: the characters are in the name itself, which never changes; a test compares its place.
      return UnsafePointer((selfPointer + Self.placeOfName).assumingMemoryBound(to: CChar.self))
    case .string(let text): return text.isEmpty ? Self.noLabel : extras.cLabel(text)
    }
  }

  /// Replaces the label that `cLabel` returns by a string that the caller keeps alive. Matching C function:
  /// `dispatch_queue_set_label_nocopy`.
  package final func setLabel(_ label: UnsafePointer<CChar>) { extras.setLabel(label) }

  /// Attaches a value by the address of its key, or removes it with nil. Matching C function:
  /// `dispatch_queue_set_specific`.
  package final func setSpecific(
    _ key: UnsafeRawPointer, _ context: UnsafeMutableRawPointer?, _ destructor: ContextFunction?
  ) {
    if context == nil && extrasIfAny == nil { return }
    let former = extras.lock.withLock { extras.contextValues.set(key, context, destructor) }
    if let former {
      DispatchQueue.global(at: .default).asyncFunction(former.value, former.destructor, barrier: false)
    }
  }

  /// The value at this queue. Matching C function: `dispatch_queue_get_specific`.
  @inline(__always)
  package final func specific(_ key: UnsafeRawPointer) -> UnsafeMutableRawPointer? {
    // ORDERING: acquiring; pairs with the publication in `makeExtras`.
    guard let known = extrasReference.load(ordering: .acquiring) else { return nil }
    // SAFETY: as in `extras`; the queue keeps them.
    return Unmanaged<QueueExtras>.fromOpaque(known)._withUnsafeGuaranteedRef {
      $0.contextValues.value(of: key)
    }
  }

  /// The value at the queue of the running item or at those above it. Matching C function:
  /// `dispatch_get_specific`.
  package static func currentSpecific(_ key: UnsafeRawPointer) -> UnsafeMutableRawPointer? {
    // Not counted: the thread that runs the item keeps its queue alive, which keeps those above.
    var link = Frame.current?.pointee.queue
    if link == nil, CurrentThread.isMain { link = .passUnretained(ProcessQueues.shared.mainQueue) }
    while let queue = link {
      if let value = queue._withUnsafeGuaranteedRef({ $0.specific(key) }) { return value }
      link = queue._withUnsafeGuaranteedRef { $0.target }
    }
    return nil
  }
}

// The class at which a queue is served, set after its creation but before its activation.

extension DispatchQueue {
  /// Sets the class as if it had been given at creation. Matching C function: `dispatch_set_qos_class`.
  package final func setClass(_ qos: DispatchQoS, _ function: StaticString) {
    requireInactive(function)
    report(QoSLevel(qos.qosClass), relativePriority: qos.relativePriority)
    (level, rule) = (QoSLevel(qos.qosClass), .exact)
  }

  /// Serves asynchronous items at this class at least. Matching C function: `dispatch_set_qos_class_floor`.
  package final func setFloor(_ qos: DispatchQoS, _ function: StaticString) {
    requireInactive(function)
    let floor = QoSLevel(qos.qosClass)
    // A higher class that has been set already stays.
    if rule == .exact && ownClass > floor { return }
    report(floor, relativePriority: qos.relativePriority)
    (level, rule) = (floor, floor == .unspecified ? .exact : .floor)
  }

  /// Sets the class of items that have none of their own and inherit none. Matching C function:
  /// `dispatch_set_qos_class_fallback`.
  package final func setFallback(_ qosClass: DispatchQoS.QoSClass, _ function: StaticString) {
    requireInactive(function)
    guard ownClass == .unspecified else { return }
    (level, rule) = (QoSLevel(qosClass), .fallback)
  }

  /// Traps on a queue that may be running already, or that can never be inactive.
  package final func requireInactive(_ function: StaticString) {
    guard state.snapshot.isInactive else {
      Trap.clientBug(
        112,
        "\(function) on queue \"\(label)\", which is active; only a queue created inactive can be configured, "
          + "before it is activated")
    }
  }
}

extension DispatchQueue {
  /// The highest limit; a higher one means no limit.
  private static let widest = Int(UInt16.max)
  /// The width of a queue that sets none.
  static var noLimit: UInt16 { .max }

  /// Lets at most `limit` ordinary items of a concurrent queue run at once.
  ///
  /// A value below 0 means a number of processors (-1 the active ones, -2 and -3 all that exist). The pool never runs
  /// more than that at once, so such a value sets no limit. 0 means 1. Traps on a serial queue; ignored on global
  /// ones. Matching C function: `dispatch_queue_set_width`.
  package final func setWidth(_ limit: Int) {
    guard kind != .global && kind != .main else { return }
    guard kind == .concurrent else {
      Trap.clientBug(113, "dispatch_queue_set_width on queue \"\(label)\", which is not concurrent")
    }
    let isLimited = limit >= 0 && limit <= Self.widest
    width.value = isLimited ? UInt16(max(limit, 1)) : Self.noLimit
    if !isLimited { TaskThreads.adopt(self) }
    // An item may release the last reference of a C program.
    let kept = Unmanaged.passRetained(self)
    leave(state.setNarrow(isLimited))
    endApart()
    kept.release()
  }

  /// Whether no further ordinary item may run now. One value decides, as in `readersAreGone`.
  final var isFull: Bool {
    let seen = state.snapshot
    return seen.isNarrow && (seen.readers >= UInt64(width.value) || seen.isHeld)
  }
}
