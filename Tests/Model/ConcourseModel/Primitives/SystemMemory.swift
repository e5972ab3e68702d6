/// Memory of the allocator's in place of the system's: the model explores orders, not addresses.
///
/// Given back for good only in pieces as large as they were asked for, which the engine does not promise;
/// the rest is kept, which for a test's nodes is little.
enum SystemMemory {
  static func map(_ size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
    .allocate(byteCount: size, alignment: alignment)
  }

  static func unmap(_ start: UnsafeMutableRawPointer, _ size: Int) {}

  static func populate(_ start: UnsafeMutableRawPointer, _ size: Int) {}

  static func notePointers(in start: UnsafeMutableRawPointer, _ size: Int, _ holds: Bool) {}
}
