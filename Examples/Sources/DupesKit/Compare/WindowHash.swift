import Glibc

/// A fast 64-bit hash of some bytes. It only sorts out files that cannot be equal: whether files ARE equal
/// is always decided by comparing their bytes, so a collision costs time and never a false result.
enum WindowHash {
  static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var state = (seed ^ UInt64(bytes.count), seed &+ oddA)
    var offset = 0
    while offset + 16 <= bytes.count {
      let low = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      let high = bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
      state.0 = fold(low ^ state.0, oddA)
      state.1 = fold(high ^ state.1, oddB)
      offset += 16
    }
    while offset < bytes.count {
      state.0 = fold(UInt64(bytes[offset]) ^ state.0, oddB)
      offset += 1
    }
    return fold(state.0 ^ oddB, state.1 | 1)
  }

  /// Multiplies to 128 bits and adds the halves without carry: every input bit reaches every output bit.
  private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }

  private static let oddA: UInt64 = 0x9E37_79B9_7F4A_7C15
  private static let oddB: UInt64 = 0xC2B2_AE3D_27D4_EB4F

  /// Different in each run, so that nobody can prepare files that all collide.
  private static let seed = UInt64.random(in: .min ... .max)
}

/// A file and the hash of one of its windows.
struct HashedFile {
  let hash: UInt64
  let file: FileID

  /// The groups of two files or more that share a hash.
  static func crowds(_ files: inout [HashedFile]) -> [[FileID]] {
    files.sort { ($0.hash, $0.file) < ($1.hash, $1.file) }
    var crowds: [[FileID]] = []
    var start = 0
    while start < files.count {
      var end = start + 1
      while end < files.count && files[end].hash == files[start].hash { end += 1 }
      if end - start > 1 { crowds.append(files[start..<end].map(\.file)) }
      start = end
    }
    return crowds
  }
}
