// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import CConcourseABI
internal import ConcourseEvents

/// The attributes of a new queue. C refers to each combination by an address in the table
/// `_dispatch_queue_attr_concurrent`, so equal combinations are equal pointers. NULL means a plain serial queue.
struct QueueAttribute {
  var isConcurrent = true
  var isInactive = false
  var frequency = 0
  var level = 0
  var relativePriority = 0
  /// Whether the queue is promised a thread; nil leaves that to its target.
  var overcommit: Bool?

  /// In table order.
  static let classes: [UInt32] = [0, 0x05, 0x09, 0x11, 0x15, 0x19, 0x21]
  private static let frequencies = 3
  private static let priorities = 16
  private static let overcommits = 3
  private static let stride = 16
  private static let count = 2 * 2 * frequencies * classes.count * priorities * overcommits

  /// The combination at an address; nil if the address is not an entry of the table.
  init?(_ reference: Reference?) {
    guard let reference else {
      isConcurrent = false
      return
    }
    guard let index = Self.index(of: reference) else { return nil }
    var rest = index
    func next(_ size: Int) -> Int {
      defer { rest /= size }
      return rest % size
    }
    // The first entry is the plain concurrent queue.
    isConcurrent = next(2) == 0
    isInactive = next(2) == 1
    frequency = next(Self.frequencies)
    overcommit = [nil, true, false][next(Self.overcommits)]
    level = next(Self.classes.count)
    relativePriority = -next(Self.priorities)
  }

  /// The address of the combination.
  var reference: Reference {
    var index = -relativePriority
    index = index * Self.classes.count + level
    index = index * Self.overcommits + (overcommit.map { $0 ? 1 : 2 } ?? 0)
    index = index * Self.frequencies + frequency
    index = index * 2 + (isInactive ? 1 : 0)
    index = index * 2 + (isConcurrent ? 0 : 1)
    return concourse_dispatch_queue_attr_concurrent() + index * Self.stride
  }

  /// Whether the address is an entry of the table.
  static func contains(_ reference: Reference?) -> Bool {
    guard let reference else { return false }
    return index(of: reference) != nil
  }

  private static func index(of reference: Reference) -> Int? {
    let offset = Int(bitPattern: reference) &- Int(bitPattern: concourse_dispatch_queue_attr_concurrent())
    guard offset >= 0, offset < count * stride, offset % stride == 0 else { return nil }
    return offset / stride
  }

  /// The attribute that a caller passes; an address that is not an entry of the table traps.
  static func checked(_ reference: Reference?, _ function: StaticString) -> QueueAttribute {
    guard let attribute = QueueAttribute(reference) else {
      ClientBug.trap(718, "\(function): the attribute was not made by a dispatch_queue_attr_make function")
    }
    return attribute
  }

  var qos: DispatchQoS {
    DispatchQoS(
      qosClass: QoSNumber.qosClass(Self.classes[level]) ?? .unspecified, relativePriority: relativePriority)
  }
}

/// The numbers of the quality-of-service classes.
enum QoSNumber {
  static func qosClass(_ number: UInt32) -> DispatchQoS.QoSClass? {
    switch number {
    case 0: .unspecified
    case 0x05, 0x09: .background
    case 0x11: .utility
    case 0x15: .default
    case 0x19: .userInitiated
    case 0x21: .userInteractive
    default: nil
    }
  }

  static func number(_ qosClass: DispatchQoS.QoSClass) -> UInt32 {
    switch qosClass {
    case .unspecified: 0
    case .background: 0x09
    case .utility: 0x11
    case .default: 0x15
    case .userInitiated: 0x19
    case .userInteractive: 0x21
    }
  }
}

@c(dispatch_queue_attr_make_initially_inactive)
package func dispatch_queue_attr_make_initially_inactive(
  _ attribute: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  var changed = QueueAttribute.checked(attribute, "dispatch_queue_attr_make_initially_inactive")
  changed.isInactive = true
  return changed.reference
}

@c(dispatch_queue_attr_make_with_autorelease_frequency)
package func dispatch_queue_attr_make_with_autorelease_frequency(
  _ attribute: UnsafeMutableRawPointer?, _ frequency: UInt
) -> UnsafeMutableRawPointer? {
  var changed = QueueAttribute.checked(attribute, "dispatch_queue_attr_make_with_autorelease_frequency")
  guard frequency <= 2 else { return nil }
  changed.frequency = Int(frequency)
  return changed.reference
}

@c(dispatch_queue_attr_make_with_qos_class)
package func dispatch_queue_attr_make_with_qos_class(
  _ attribute: UnsafeMutableRawPointer?, _ qosClass: UInt32, _ relativePriority: Int32
) -> UnsafeMutableRawPointer? {
  var changed = QueueAttribute.checked(attribute, "dispatch_queue_attr_make_with_qos_class")
  guard let level = QueueAttribute.classes.firstIndex(of: qosClass), (-15...0).contains(relativePriority)
  else { return nil }
  changed.level = level
  changed.relativePriority = Int(relativePriority)
  return changed.reference
}

@c(dispatch_queue_attr_make_with_overcommit)
package func dispatch_queue_attr_make_with_overcommit(
  _ attribute: UnsafeMutableRawPointer?, _ overcommit: Bool
) -> UnsafeMutableRawPointer? {
  var changed = QueueAttribute.checked(attribute, "dispatch_queue_attr_make_with_overcommit")
  changed.overcommit = overcommit
  return changed.reference
}
