import CTracing
import Glibc

/// The memory of a process, or what its core dump has of it.
protocol TargetMemory: AnyObject {
  /// Copies the bytes from `address` on.
  /// - Returns: false if some of them cannot be read.
  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool

  /// The parts of a writable region that have ever been written; reading the others would cost time and memory.
  func populated(_ region: MappedRegion) -> [Range<UInt64>]
}

/// How many links of the process's lists a report follows. A damaged or hostile process may have any number of queues, all
/// with lists of any length; a report on it is incomplete, but comes.
final class LinkBudget {
  private(set) var left: Int
  private var ofLook = Int.max

  /// - Parameter left: A link costs a system call: these take some seconds.
  init(_ left: Int = 4_000_000) { self.left = left }

  /// - Returns: false if nothing more may be read.
  func take(_ count: Int = 1) -> Bool {
    guard left >= count, ofLook >= count else { return false }
    left -= count
    ofLook -= count
    return true
  }

  /// Gives what is read until the next call an equal part of the rest.
  func beginLook(of looks: Int) { ofLook = left / max(looks, 1) }
}

extension TargetMemory {
  func number<Number: FixedWidthInteger>(at address: UInt64, as type: Number.Type = Number.self) -> Number? {
    var value: Number = 0
    return withUnsafeMutableBytes(of: &value) { read(address, into: $0) } ? value : nil
  }

  func word(_ address: UInt64) -> UInt64? { number(at: address) }

  /// The number of something; 0 if it cannot be read. No engine has more than the limit.
  func count(at address: UInt64) -> Int { Int(min(word(address) ?? 0, 1 << 40)) }

  func bytes(at address: UInt64, count: Int) -> [UInt8]? {
    guard count >= 0, count <= FileBytes.maximumRead else { return nil }
    // For none the standard library would write to the empty array that all threads share.
    if count == 0 { return [] }
    var isRead = false
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      isRead = read(address, into: UnsafeMutableRawBufferPointer(buffer))
      filled = isRead ? count : 0
    }
    return isRead ? bytes : nil
  }

  /// The text up to the next zero byte; cut after `limit` bytes.
  func text(at address: UInt64, limit: Int = 512) -> String? {
    var found: [UInt8] = []
    var place = address
    while found.count < limit {
      // Up to the end of a piece of 64 bytes, so that no read crosses into a page without the text.
      let count = min(64 - Int(place % 64), limit - found.count)
      guard let piece = bytes(at: place, count: count) else { return nil }
      if let end = piece.firstIndex(of: 0) {
        found += piece[..<end]
        break
      }
      found += piece
      place += UInt64(count)
    }
    return String(decoding: found, as: UTF8.self)
  }

  /// The address of what a self-relative 32-bit offset at `address` names.
  func relative(at address: UInt64) -> UInt64? {
    guard let offset: Int32 = number(at: address), offset != 0 else { return nil }
    return address &+ UInt64(bitPattern: Int64(offset))
  }
}

/// One mapping of the process.
struct MappedRegion {
  var start: UInt64
  var end: UInt64
  var isReadable: Bool
  var isWritable: Bool
  var isExecutable: Bool
  var isPrivate: Bool
  /// Of `start`, in the file.
  var offset: UInt64
  /// Empty for anonymous memory.
  var path: String

  func contains(_ address: UInt64) -> Bool { start <= address && address < end }

  /// From a line of /proc/PID/maps.
  init?(line: Substring) {
    let words = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
    guard words.count >= 5, let dash = words[0].firstIndex(of: "-"),
      let start = UInt64(words[0][..<dash], radix: 16),
      let end = UInt64(words[0][words[0].index(after: dash)...], radix: 16),
      let offset = UInt64(words[2], radix: 16)
    else { return nil }
    let rights = Array(words[1].utf8)
    guard rights.count == 4 else { return nil }
    self.init(
      start: start, end: end, isReadable: rights[0] == UInt8(ascii: "r"),
      isWritable: rights[1] == UInt8(ascii: "w"),
      isExecutable: rights[2] == UInt8(ascii: "x"), isPrivate: rights[3] == UInt8(ascii: "p"), offset: offset,
      path: words.count == 6 ? String(words[5].drop { $0 == " " }) : "")
  }

  init(
    start: UInt64, end: UInt64, isReadable: Bool, isWritable: Bool, isExecutable: Bool, isPrivate: Bool,
    offset: UInt64, path: String
  ) {
    self.start = start
    self.end = end
    self.isReadable = isReadable
    self.isWritable = isWritable
    self.isExecutable = isExecutable
    self.isPrivate = isPrivate
    self.offset = offset
    self.path = path
  }
}

/// The memory of a running or stopped process. The kernel asks for the same permissions as for ptrace.
final class LiveMemory: TargetMemory {
  /// The process, or a thread of it that has not ended.
  var process: Int32
  /// /proc/PID/pagemap, or -1.
  private let pages: Int32
  private static let pageSize: UInt64 = UInt64(sysconf(Int32(_SC_PAGESIZE)))

  init(process: Int32) {
    self.process = process
    pages = open("/proc/\(process)/pagemap", O_RDONLY | O_CLOEXEC)
  }

  deinit { if pages >= 0 { close(pages) } }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    guard let start = bytes.baseAddress else { return true }
    var done = 0
    while done < bytes.count {
      let count = tracing_read(process, address &+ UInt64(done), start + done, bytes.count - done)
      guard count > 0 else { return false }
      done += count
    }
    return true
  }

  func write<Number: FixedWidthInteger>(_ number: Number, at address: UInt64) {
    var number = number
    _ = tracing_write(process, address, &number, MemoryLayout<Number>.size)
  }

  func populated(_ region: MappedRegion) -> [Range<UInt64>] {
    var found: [Range<UInt64>] = []
    var place = region.start
    var entries = [UInt64](repeating: 0, count: 8192)
    while place < region.end {
      let wanted = min(entries.count, Int((region.end - place) / Self.pageSize))
      let got = entries.withUnsafeMutableBytes {
        pread(pages, $0.baseAddress, wanted * 8, off_t(place / Self.pageSize * 8))
      }
      guard got >= 8 else { return found + [place..<region.end] }
      for index in 0..<got / 8 {
        // Present, or in the swap area.
        if entries[index] >> 62 != 0 {
          if let last = found.last, last.upperBound == place {
            found[found.count - 1] = last.lowerBound..<place + Self.pageSize
          } else {
            found.append(place..<place + Self.pageSize)
          }
        }
        place += Self.pageSize
      }
    }
    return found
  }
}
