extension OnceGate {
  /// Passes the gate that lies in a word of a C program, `dispatch_once_t`: 0 before, all ones afterwards.
  /// - Parameter word: 8 bytes that stay where they are.
  package static func perform(at word: UnsafeMutableRawPointer, _ body: () -> Void) {
    // SAFETY: a gate is an atomic of 32 bits whose first state is 0, and those are the word's lower half.
    let gate = word.assumingMemoryBound(to: OnceGate.self)
    gate.pointee.perform {
      body()
      // SAFETY: the word's upper half. Inlined client code takes the whole word for done only when the gate has
      // stored the lower half, which it does afterwards, releasing.
      let upper = (word + 4).assumingMemoryBound(to: Atomic<UInt32>.self)
      // ORDERING: relaxed; see above.
      upper.pointee.store(.max, ordering: .relaxed)
    }
  }
}
