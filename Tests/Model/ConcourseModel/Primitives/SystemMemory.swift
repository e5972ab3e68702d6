/// Memory of the allocator instead of the system's: the model explores interleavings, not addresses.
///
/// Nothing is freed: the engine may unmap a part of a mapping, which the allocator cannot do. Tests use little memory.
enum SystemMemory {
  static func map(_ size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
    .allocate(byteCount: size, alignment: alignment)
  }

  static func unmap(_ start: UnsafeMutableRawPointer, _ size: Int) {}

  static func populate(_ start: UnsafeMutableRawPointer, _ size: Int) {}

  static func notePointers(in start: UnsafeMutableRawPointer, _ size: Int, _ holds: Bool) {}
}
