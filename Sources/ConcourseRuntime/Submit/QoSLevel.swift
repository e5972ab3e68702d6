/// A quality-of-service class as the engine orders it: higher raw value, earlier service.
@usableFromInline
enum QoSLevel: UInt8, Comparable {
  case unspecified = 0
  case background = 1
  case utility = 2
  case `default` = 3
  case userInitiated = 4
  case userInteractive = 5

  @usableFromInline
  static func < (a: QoSLevel, b: QoSLevel) -> Bool { a.rawValue < b.rawValue }

  init(_ qosClass: DispatchQoS.QoSClass) {
    switch qosClass {
    case .background: self = .background
    case .utility: self = .utility
    case .default: self = .default
    case .userInitiated: self = .userInitiated
    case .userInteractive: self = .userInteractive
    case .unspecified: self = .unspecified
    }
  }

  var qosClass: DispatchQoS.QoSClass {
    switch self {
    case .background: .background
    case .utility: .utility
    case .default: .default
    case .userInitiated: .userInitiated
    case .userInteractive: .userInteractive
    case .unspecified: .unspecified
    }
  }

  /// The level whose root queue serves work of this level.
  var served: QoSLevel { self == .unspecified ? .default : self }

  /// What an asynchronous submission inherits from a submitter at this level: user-interactive is
  /// reserved for the thread that talks to the user and travels one class lower.
  var propagated: QoSLevel { self == .userInteractive ? .userInitiated : self }
}

extension QoSLevel: AtomicRepresentable {}
