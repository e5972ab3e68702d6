internal import ConcourseEvents

/// The C interface's traps. Each message begins with the name of the function that was called.
enum Reject {
  @inline(never)
  static func null(_ function: StaticString, _ argument: StaticString) -> Never {
    ClientBug.trap(701, "\(function): the \(argument) is NULL")
  }

  @inline(never)
  static func kind(_ function: StaticString, _ kind: ObjectKind, _ wanted: StaticString) -> Never {
    ClientBug.trap(702, "\(function): the argument is \(kind.inWords), not \(wanted)")
  }
}

extension ObjectKind {
  fileprivate var inWords: StaticString {
    switch self {
    case .serial, .concurrent, .workloop, .global, .main, .runLoop, .mainQueueSymbol: "a queue"
    case .source: "a source"
    case .group: "a group"
    case .semaphore: "a semaphore"
    case .channel: "an I/O channel"
    case .data, .emptyDataSymbol: "a data object"
    case .attribute: "a queue attribute"
    case .otherSymbol: "a constant"
    }
  }
}
