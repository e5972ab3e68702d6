import Synchronization

/// What a queue's level means to an item of its own level, or whose submitter has one.
enum ServingRule: UInt8, AtomicRepresentable {
  /// The item is served at the queue's level.
  case exact
  /// At the higher one.
  case floor
  /// At its own, the queue's being for items that have none.
  case fallback
}

// The class a queue is served at, said after its creation but before its activation.

extension DispatchQueue {
  /// As if the class had been given at creation. Matching C function: `dispatch_set_qos_class`.
  package final func setClass(_ qos: DispatchQoS, _ function: StaticString) {
    requireInactive(function)
    report(QoSLevel(qos.qosClass), relativePriority: qos.relativePriority)
    (level, rule) = (QoSLevel(qos.qosClass), .exact)
  }

  /// Lifts asynchronous items to at least this class. Matching C function: `dispatch_set_qos_class_floor`.
  package final func setFloor(_ qos: DispatchQoS, _ function: StaticString) {
    requireInactive(function)
    let floor = QoSLevel(qos.qosClass)
    // A class that is fixed already, and higher, says more.
    if rule == .exact && ownClass > floor { return }
    report(floor, relativePriority: qos.relativePriority)
    (level, rule) = (floor, floor == .unspecified ? .exact : .floor)
  }

  /// The class of items that have none of their own and inherit none. Matching C function:
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
        "\(function) on queue \"\(label)\", which is active; only a queue created inactive can be configured, "
          + "before it is activated")
    }
  }

  /// Traps on a workloop that is still to be configured: what its items are served at is not known yet.
  final func requireActive() {
    guard !state.snapshot.isInactive else {
      Trap.clientBug("an item was submitted to workloop \"\(label)\", which is inactive; activate it first")
    }
  }
}
