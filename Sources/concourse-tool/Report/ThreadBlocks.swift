/// Where glibc has a thread's control block: memory that contains its own address, the thread's id, and the thread
/// pointer or its place.
struct ThreadBlocks {
  /// From the word that has its own address to the thread pointer.
  let pointer: UInt64
  /// From the thread pointer to the thread's id.
  let id: UInt64
  /// Whether that address begins 64 bytes, and is there a second time 16 bytes further on.
  let isTwice: Bool

  init(_ process: TargetProcess) {
    switch process.processor {
    case .x86:
      // The block begins at the thread pointer.
      (pointer, id, isTwice) = (0, 0x2D0, true)
    case .arm64:
      // The block ends at the thread pointer; its size differs between versions, and is there for debuggers.
      let size = Self.size(in: process)
      (pointer, id, isTwice) = (size &- 0xE0, 0xD0 &- size, false)
    }
  }

  private static func size(in process: TargetProcess) -> UInt64 {
    guard let region = process.regions.first(where: { $0.offset == 0 && $0.path.hasSuffix("/libc.so.6") }),
      let place = (try? ElfImage(path: region.path))?.variable(named: "_thread_db_sizeof_pthread"),
      let size: UInt32 = process.memory.number(at: region.start &+ place)
    else { return 1824 }
    return UInt64(size)
  }
}
