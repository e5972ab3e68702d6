internal import CConcourse
internal import Glibc

/// Whole pages from the system, without the allocator, which keeps most of what it gets back.
enum SystemMemory {
  /// `size` zeroed bytes that begin at a multiple of `alignment`. A page exists once it is written.
  /// - Parameters:
  ///   - size: bytes, a multiple of `alignment`.
  ///   - alignment: a power of two, a multiple of the page size.
  /// - Returns: nil if the system refuses.
  static func map(_ size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
    // New mappings are mostly adjacent, so the first guess mostly fits.
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

  /// Unmaps `size` bytes at `start`: whole pages that `map` returned.
  static func unmap(_ start: UnsafeMutableRawPointer, _ size: Int) {
    // The system refuses to split a mapping when there are too many. Then at least the pages are freed.
    if munmap(start, size) != 0 { madvise(start, size, MADV_DONTNEED) }
  }

  /// Makes the pages of `size` bytes at `start` exist before they are written. A hint.
  static func populate(_ start: UnsafeMutableRawPointer, _ size: Int) {
    // MADV_POPULATE_WRITE, which older headers do not name and older kernels refuse.
    let populateForWriting: Int32 = 23
    madvise(start, size, populateForWriting)
  }

  /// Tells the leak checker of an address-sanitized build whether to look for pointers there.
  static func notePointers(in start: UnsafeMutableRawPointer, _ size: Int, _ holds: Bool) {
    concourse_note_pointers(start, size, holds)
  }

  private static func map(_ size: Int) -> UnsafeMutableRawPointer? {
    let start = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    return start == UnsafeMutableRawPointer(bitPattern: -1) ? nil : start
  }
}
