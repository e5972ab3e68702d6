import Glibc

/// A path or a name exactly as the kernel has it: any run of bytes without NUL, not always UTF-8.
package typealias Bytes = [UInt8]

extension Bytes {
  /// Calls `body` with these bytes as a NUL-terminated C string.
  func withCPath<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    (self + [0]).withUnsafeBufferPointer { buffer in
      // SAFETY: UInt8 and CChar have the same layout; the NUL added above ends the string in the buffer.
      buffer.withMemoryRebound(to: CChar.self) { body($0.baseAddress!) }
    }
  }

  /// The directory that a path's last name stands in.
  var parent: Bytes {
    guard let slash = lastIndex(of: UInt8(ascii: "/")) else { return Bytes(".".utf8) }
    return slash == 0 ? Bytes("/".utf8) : Bytes(self[..<slash])
  }

  /// The path of an entry of this directory.
  func entry(_ name: Bytes) -> Bytes {
    last == UInt8(ascii: "/") ? self + name : self + Bytes("/".utf8) + name
  }

  var data: DispatchData { withUnsafeBytes { DispatchData(bytes: $0) } }

  /// For messages: what is not UTF-8 is repaired.
  var text: String { String(decoding: self, as: UTF8.self) }
}

/// What an error number means, in the system's words.
func describe(errno number: Int32) -> String {
  withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
    // SAFETY: the call writes a terminated string into the buffer if it succeeds.
    strerror_r(number, buffer.baseAddress!, buffer.count) == 0
      ? String(cString: buffer.baseAddress!) : "error \(number)"
  }
}
