extension DispatchQueue {
  /// The widest limit that can be set; beyond it there is none.
  private static let widest = Int(UInt16.max)

  /// Lets at most `limit` ordinary items of a concurrent queue run at once.
  ///
  /// Limits below 0 name numbers of processors (-1 active ones, -2 and -3 those that there are): the pool keeps to
  /// those by itself, so they set none. 0 means 1. Traps on a serial queue; ignored on global ones. Matching C
  /// function: `dispatch_queue_set_width`.
  package final func setWidth(_ limit: Int) {
    guard kind != .global && kind != .main else { return }
    guard kind == .concurrent else {
      Trap.clientBug("dispatch_queue_set_width on queue \"\(label)\", which is not concurrent")
    }
    let isLimited = limit >= 0 && limit <= Self.widest
    if isLimited { width.value = UInt16(max(limit, 1)) }
    carryOut(state.setNarrow(isLimited))
  }

  /// Whether no further ordinary item may run now.
  final var isFull: Bool { state.snapshot.isNarrow && state.snapshot.readers >= UInt64(width.value) }
}
