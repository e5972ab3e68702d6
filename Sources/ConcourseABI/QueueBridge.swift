internal import CConcourseABI
package import ConcourseRuntime

/// The way between a queue of ours and the toolchain's Swift object for the same queue.
///
/// That object holds the C reference where nobody can reach it, nor can one be made from a reference. But whatever it
/// does becomes a C call, and those are ours: a thread says first what its next call is to mean.
package enum QueueBridge {
  /// Lets `make`, which creates a queue through the C interface, get `queue` instead of a new one.
  package static func adopting<Wrapper>(_ queue: DispatchQueue, make: () -> Wrapper) -> Wrapper {
    let crossing = concourse_current_crossing()
    // Those that stay for ever are not counted: nobody gives their references back.
    let stays = queue.kind == .main || queue.kind == .global
    crossing.pointee.adopted = stays ? queue.reference : queue.countedReference
    let made = make()
    guard crossing.pointee.adopted == nil else {
      ClientBug.trap(
        "a queue cannot be bridged: the toolchain's DispatchQueue was made without calling this library")
    }
    return made
  }

  /// The queue that `ask` asks the C interface for the label of.
  package static func queue(askedBy ask: () -> Void) -> DispatchQueue {
    let crossing = concourse_current_crossing()
    crossing.pointee.captures = 1
    ask()
    crossing.pointee.captures = 0
    defer { crossing.pointee.captured = nil }
    guard let captured = crossing.pointee.captured else {
      ClientBug.trap("a queue cannot be bridged: the toolchain's DispatchQueue is not one of this library's")
    }
    return Object.queue(captured, "bridging").takeUnretainedValue()
  }

  // MARK: For the C calls

  /// The queue to return instead of making one.
  @inline(__always)
  static func takeAdopted() -> Reference? {
    let crossing = concourse_current_crossing()
    guard let adopted = crossing.pointee.adopted else { return nil }
    crossing.pointee.adopted = nil
    return adopted
  }

  /// A label is asked for.
  @inline(__always)
  static func noteLabelQuery(_ queue: Reference) {
    let crossing = concourse_current_crossing()
    if crossing.pointee.captures != 0 { crossing.pointee.captured = queue }
  }
}
