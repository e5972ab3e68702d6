import CTracing
import Glibc

/// What a target needs of the fuzzer: its bytes in pieces, as a file, and its seeds on disk.
struct FuzzInput {
  private(set) var rest: ArraySlice<UInt8>

  init(_ start: UnsafePointer<UInt8>?, _ count: Int) {
    // SAFETY: the fuzzer passes `count` bytes, which it keeps during the call.
    rest = Array(UnsafeBufferPointer(start: start, count: count))[...]
  }

  /// The next number, of `Number`'s size; zeros follow the end.
  mutating func next<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number {
    var number: Number = 0
    for place in 0..<Number.bitWidth / 8 {
      number |= Number(truncatingIfNeeded: rest.popFirst() ?? 0) << Number(8 * place)
    }
    return number
  }
}

/// A file in memory with what the fuzzer has made. One for the process: it is written anew for each input.
enum FuzzFile {
  private static let descriptor = tracing_memory_file()

  static let path = "/proc/self/fd/\(descriptor)"

  static func write(_ bytes: ArraySlice<UInt8>) {
    ftruncate(descriptor, 0)
    let written = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    precondition(written == bytes.count)
  }
}

/// With FUZZ_SEEDS, the target writes its seeds into that folder, and ends. The programs that the readers would start
/// (the symbolizer) are not found, and an answer to a terminal goes nowhere.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
  _: UnsafeMutablePointer<CInt>, _: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>
) -> CInt {
  if let folder = getenv("FUZZ_SEEDS").map({ String(cString: $0) }) {
    for (number, seed) in seeds.enumerated() {
      let file = open("\(folder)/seed-\(number)", O_WRONLY | O_CREAT | O_TRUNC, 0o644)
      let written = seed.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      precondition(written == seed.count, "\(folder) cannot be written")
      close(file)
    }
    exit(0)
  }
  setenv("PATH", "/nowhere", 1)
  return 0
}
