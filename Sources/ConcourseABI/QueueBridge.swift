internal import CConcourseABI
package import ConcourseEvents

/// Converts between a queue of this library and the toolchain's Swift object for the same queue.
///
/// That object keeps its C reference private, and no such object can be made from a reference. But its operations call
/// this library's C functions, so the bridging thread first tells the next C call what to do (`concourse_crossing`).
package enum QueueBridge {
  /// Runs `make`, whose C call to create a queue returns `queue` instead of a new one.
  package static func adopting<Wrapper>(_ queue: DispatchQueue, make: () -> Wrapper) -> Wrapper {
    let crossing = concourse_current_crossing()
    // C does not count references to the main queue and to global queues.
    let isPermanent = queue.kind == .main || queue.kind == .global
    crossing.pointee.adopted = isPermanent ? queue.reference : queue.countedReference
    let made = make()
    guard crossing.pointee.adopted == nil else {
      ClientBug.trap(
        724,
        "a queue cannot be bridged: the toolchain's DispatchQueue was made without calling this library")
    }
    return made
  }

  /// The queue whose label `ask` queries through the C interface.
  package static func queue(askedBy ask: () -> Void) -> DispatchQueue {
    let crossing = concourse_current_crossing()
    crossing.pointee.captures = 1
    ask()
    crossing.pointee.captures = 0
    defer { crossing.pointee.captured = nil }
    guard let captured = crossing.pointee.captured else {
      ClientBug.trap(
        725, "a queue cannot be bridged: the toolchain's DispatchQueue is not one of this library's")
    }
    return Object.queue(captured, "bridging").takeUnretainedValue()
  }

  // MARK: Called by the C functions

  /// The queue to return instead of making one.
  @inline(__always)
  static func takeAdopted() -> Reference? {
    let crossing = concourse_current_crossing()
    guard let adopted = crossing.pointee.adopted else { return nil }
    crossing.pointee.adopted = nil
    return adopted
  }

  /// Stores the queue of a label query, if this thread is waiting for one.
  @inline(__always)
  static func noteLabelQuery(_ queue: Reference) {
    let crossing = concourse_current_crossing()
    if crossing.pointee.captures != 0 { crossing.pointee.captured = queue }
  }
}
