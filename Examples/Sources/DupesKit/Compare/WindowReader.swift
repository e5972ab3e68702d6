import Glibc

/// Reads a stretch of a file, and makes sure that it is still the file that the walk recorded.
///
/// The file is opened for each window and closed after it: comparing a hundred large files then takes one
/// descriptor at a time, and opening costs little next to reading a large window.
struct WindowReader {
  let catalogue: Catalogue
  let followsSymbolicLinks: Bool

  /// Reads bytes `offset..<offset + length` of `file` to `memory`, which has room for one byte more: that
  /// byte is asked for at the end of the file, to notice without another call that it goes on.
  ///
  /// - Returns: nil when all is well, else why the file must be left out.
  // SAFETY: the caller owns `memory`, which has `length + 1` bytes; no read asks for more than is left of it.
  func read(
    _ file: FileID, at offset: Int64, _ length: Int, to memory: UnsafeMutableRawPointer, path: inout Bytes
  ) -> Reason? {
    let record = catalogue.records[Int(file)]
    catalogue.getTerminatedPath(of: file, into: &path)
    // Not blocking: should a pipe have taken the file's place, opening it must not hang.
    let flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (followsSymbolicLinks ? 0 : O_NOFOLLOW)
    let descriptor = path.withTerminatedCPath { open($0, flags) }
    guard descriptor >= 0 else { return .system(errno: errno) }
    defer { close(descriptor) }

    let atEnd = offset + Int64(length) == record.size
    let wanted = length + (atEnd ? 1 : 0)
    var count = 0
    repeat {
      let got = readRetrying(descriptor, memory + count, wanted - count, at: offset + Int64(count))
      if got < 0 { return .system(errno: errno) }
      if got == 0 { break }
      count += got
    } while count < length

    // The status is taken AFTER the read: a change before or during the read shows in it, so that all
    // windows of a file that passes belong to one and the same content.
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return .system(errno: errno) }
    guard record.stillMatches(status) else { return .changed }
    if count < length { return .shorterThanItsSize }
    return count > length ? .changed : nil
  }

  // SAFETY: `memory` has room for `count` bytes, which is all the kernel is told to write.
  private func readRetrying(
    _ descriptor: Int32, _ memory: UnsafeMutableRawPointer, _ count: Int, at offset: Int64
  ) -> Int {
    while true {
      let got = pread(descriptor, memory, count, off_t(offset))
      if got >= 0 || errno != EINTR { return got }
    }
  }
}

/// One worker's memory, kept from batch to batch: fresh memory would have to be cleared by the kernel.
// SAFETY: OWNED BY the one worker that took it from the pool, until it gives it back.
final class Scratch: @unchecked Sendable {
  private(set) var memory: UnsafeMutableRawPointer
  private var capacity: Int
  var path: Bytes = []
  var labels: [Int32] = []

  init() {
    capacity = 256 << 10
    memory = .allocate(byteCount: capacity, alignment: 64)
  }

  deinit { memory.deallocate() }

  /// Makes room for `needed` bytes; the first `kept` bytes stay.
  func reserve(_ needed: Int, keeping kept: Int) {
    guard needed > capacity else { return }
    let larger = max(needed, capacity * 2)
    // SAFETY: `kept` bytes are within both the old and the new memory, and the old is freed once.
    let fresh = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 64)
    fresh.copyMemory(from: memory, byteCount: kept)
    memory.deallocate()
    memory = fresh
    capacity = larger
  }
}

/// Lends scratch memory: never more pieces than there are workers at once.
// SAFETY: `free` is GUARDED BY `queue`, a serial queue whose `sync` is the lock.
final class ScratchPool: @unchecked Sendable {
  private let queue = DispatchQueue(label: "dupes.scratch")
  private var free: [Scratch] = []

  func withScratch<Result>(_ body: (Scratch) -> Result) -> Result {
    let scratch = queue.sync { free.popLast() } ?? Scratch()
    defer { queue.sync { free.append(scratch) } }
    return body(scratch)
  }
}
