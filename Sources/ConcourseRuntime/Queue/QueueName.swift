internal import Glibc

/// A queue's label as it was given: as Swift's string, or as a copy of C's, each made the other only when asked for.
///
/// The queue owns it: `free` is to be called when it goes.
enum QueueName {
  case string(String)
  case cString(UnsafeMutablePointer<CChar>)

  init(_ label: String) { self = .string(label) }

  /// Copies a C string; nil is the empty one.
  init(copying label: UnsafePointer<CChar>?) {
    guard let label, label.pointee != 0 else {
      self = .string("")
      return
    }
    guard let copy = strdup(label) else { Trap.outOfMemory("the label of a queue") }
    self = .cString(copy)
  }

  var text: String {
    switch self {
    case .string(let text): text
    case .cString(let text): String(cString: text)
    }
  }

  func free() {
    switch self {
    case .string: break
    case .cString(let text): Glibc.free(text)
    }
  }
}
