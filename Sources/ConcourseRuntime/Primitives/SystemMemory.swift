internal import CConcourse
internal import Glibc

/// Memory that comes from the system and goes back to it in whole pages, past the allocator: what the
/// allocator gets back it mostly keeps.
enum SystemMemory {
  /// `size` zeroed bytes that begin at a multiple of `alignment`; no page of them exists before it is written.
  /// - Parameters:
  ///   - size: bytes, a multiple of `alignment`.
  ///   - alignment: a power of two, a multiple of the page size.
  /// - Returns: nil when the system refuses.
  static func map(_ size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
    // New mappings mostly lie side by side, so that the first guess mostly fits.
    guard let guess = map(size) else { return nil }
    if UInt(bitPattern: guess) % UInt(alignment) == 0 { return guess }
    munmap(guess, size)
    guard let wide = map(size + alignment) else { return nil }
    let start = wide.alignedUp(toMultipleOf: alignment)
    let before = start - wide
    if before > 0 { munmap(wide, before) }
    if before < alignment { munmap(start + size, alignment - before) }
    return start
  }

  /// Gives `size` bytes at `start` back: whole pages of what `map` returned.
  static func unmap(_ start: UnsafeMutableRawPointer, _ size: Int) {
    // Refused when it would split a mapping and there are too many: the pages at least can go.
    if munmap(start, size) != 0 { madvise(start, size, MADV_DONTNEED) }
  }

  /// Makes the pages of `size` bytes at `start` exist before they are written. A hint.
  static func populate(_ start: UnsafeMutableRawPointer, _ size: Int) {
    // MADV_POPULATE_WRITE, which older headers do not name and older kernels refuse.
    let populateForWriting: Int32 = 23
    madvise(start, size, populateForWriting)
  }

  /// Whether the leak checker of an address-sanitized build is to look for pointers there.
  static func notePointers(in start: UnsafeMutableRawPointer, _ size: Int, _ holds: Bool) {
    concourse_note_pointers(start, size, holds)
  }

  private static func map(_ size: Int) -> UnsafeMutableRawPointer? {
    let start = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    return start == UnsafeMutableRawPointer(bitPattern: -1) ? nil : start
  }
}
