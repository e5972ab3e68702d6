internal import Glibc

// What only the C interface asks of queues: labels as C strings, values by pointers.

extension DispatchQueue {
  /// Makes a queue for C. `mayChangeTarget`: also while it is active.
  package convenience init(
    cLabel: UnsafePointer<CChar>?, isConcurrent: Bool, qos: DispatchQoS, isInactive: Bool,
    target: DispatchQueue?, mayChangeTarget: Bool
  ) {
    self.init(
      kind: isConcurrent ? .concurrent : .serial, label: cLabel.map { String(cString: $0) } ?? "", qos: qos,
      attributes: isInactive ? .initiallyInactive : [], target: target, mayChangeTarget: mayChangeTarget)
  }

  /// The empty string.
  // SAFETY: never written and never freed.
  package nonisolated(unsafe) static let noLabel = UnsafePointer(strdup("")!)

  /// The label as a C string that lives as long as the queue.
  package final var cLabel: UnsafePointer<CChar> {
    if label.isEmpty && extrasIfAny == nil { return Self.noLabel }
    return extras.cLabel { self.label }
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
    let value = context.map { ContextValue($0, destructor) }
    let former = extras.lock.withLock { () -> ContextValue? in
      defer { extras.contextValues[key] = value }
      return extras.contextValues[key]
    }
    // Its destructor is submitted outside of the lock.
    withExtendedLifetime(former) {}
  }

  /// The value at this queue. Matching C function: `dispatch_queue_get_specific`.
  package final func specific(_ key: UnsafeRawPointer) -> UnsafeMutableRawPointer? {
    guard let extras = extrasIfAny else { return nil }
    return extras.lock.withLock { extras.contextValues[key]?.context }
  }

  /// The value at the queue of the running item or at those above it. Matching C function:
  /// `dispatch_get_specific`.
  package static func currentSpecific(_ key: UnsafeRawPointer) -> UnsafeMutableRawPointer? {
    var link = current
    while let queue = link {
      if let value = queue.specific(key) { return value }
      link = queue.targetQueue
    }
    return nil
  }
}

/// A value that a C program has attached to a queue. With it goes what it points to, on the default global queue.
final class ContextValue {
  let context: UnsafeMutableRawPointer
  private let destructor: ContextFunction?

  init(_ context: UnsafeMutableRawPointer, _ destructor: ContextFunction?) {
    self.context = context
    self.destructor = destructor
  }

  deinit {
    if let destructor { Runtime.globalQueue(.default).asyncFunction(context, destructor) }
  }
}
