internal import Glibc

// What only the C interface asks of queues: labels as C strings, values by pointers.

extension DispatchQueue {
  /// Makes a queue for C. `mayChangeTarget`: also while it is active.
  package convenience init(
    cLabel: UnsafePointer<CChar>?, isConcurrent: Bool, qos: DispatchQoS, isInactive: Bool,
    target: DispatchQueue?, mayChangeTarget: Bool
  ) {
    self.init(
      kind: isConcurrent ? .concurrent : .serial, label: QueueName(copying: cLabel), qos: qos,
      attributes: isInactive ? .initiallyInactive : [], target: target, mayChangeTarget: mayChangeTarget)
  }

  /// The empty string.
  // SAFETY: never written and never freed.
  package nonisolated(unsafe) static let noLabel = UnsafePointer(strdup("")!)

  /// The label as a C string that lives as long as the queue.
  package final var cLabel: UnsafePointer<CChar> {
    // Another may have been set.
    if let other = extrasIfAny?.otherLabel { return other }
    switch name {
    case .cString(let text): return UnsafePointer(text)
    case .string(let text): return text.isEmpty ? Self.noLabel : extras.cLabel(text)
    }
  }

  /// Replaces what `cLabel` reads by a string that the caller keeps. Matching C function:
  /// `dispatch_queue_set_label_nocopy`.
  package final func setLabel(_ label: UnsafePointer<CChar>) { extras.setLabel(label) }

  /// Attaches a value by the address of its key, nil removing it. Matching C function:
  /// `dispatch_queue_set_specific`.
  package final func setSpecific(
    _ key: UnsafeRawPointer, _ context: UnsafeMutableRawPointer?, _ destructor: ContextFunction?
  ) {
    if context == nil && extrasIfAny == nil { return }
    let former = extras.lock.withLock { extras.contextValues.set(key, context, destructor) }
    if let former {
      Runtime.globalQueue(.default).asyncFunction(former.value, former.destructor, barrier: false)
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
    // Not counted: whoever runs the item keeps its queue, which keeps those above.
    var link = Frame.current?.pointee.queue
    if link == nil, CurrentThread.isMain { link = .passUnretained(Runtime.mainQueue) }
    while let queue = link {
      if let value = queue._withUnsafeGuaranteedRef({ $0.specific(key) }) { return value }
      link = queue._withUnsafeGuaranteedRef { $0.target }
    }
    return nil
  }
}
