import CBench
import Glibc

extension Row {
  static let readCachedFile = Row(
    "read-cached-file", .seconds,
    "sequential read of a cached 1 GiB file by one DispatchIO stream with default settings: wall seconds"
  ) { scale in
    let size = scale.count(1 << 30)
    let file = bench_make_cached_file(size)
    verify(file >= 0, equals: true, "a temporary file is there")
    var sample: UInt64?
    var best = Int.max
    for pass in 0...3 {
      verify(lseek(file, 0, SEEK_SET), equals: 0, "lseek")
      let reading = Reading()
      let time = elapsed { reading.read(file, size) }
      verify(reading.offset, equals: size, "bytes read")
      verify(reading.sample, equals: sample ?? reading.sample, "the sample of the bytes read")
      sample = reading.sample
      // The first pass is the warm-up.
      if pass > 0 { best = min(best, time) }
    }
    close(file)
    return Measurement(
      value: Double(best) / 1e9, operations: size, check: Int(truncatingIfNeeded: (sample ?? 0) >> 1))
  }
}

/// SAFETY: the fields are written by the handlers of one serial queue, and read after `done`.
private final class Reading: @unchecked Sendable {
  private(set) var offset = 0
  private(set) var sample: UInt64 = 0
  private let done = DispatchSemaphore(value: 0)
  private let queue = DispatchQueue(label: "reading")

  func read(_ file: Int32, _ size: Int) {
    let channel = DispatchIO(type: .stream, fileDescriptor: file, queue: queue) { [done] error in
      verify(error, equals: 0, "error of the channel")
      done.signal()
    }
    channel.read(offset: 0, length: size, queue: queue) { [self] finished, data, error in
      verify(error, equals: 0, "error of a read")
      if let data { take(data) }
      if finished { channel.close() }
    }
    done.wait()
  }

  /// Looks at the bytes where they are, region by region, as the rival looks at its buffer.
  private func take(_ data: DispatchData) {
    data.enumerateBytes { bytes, _, _ in
      if let base = bytes.baseAddress { sample &+= bench_sample(base, bytes.count, offset) }
      offset += bytes.count
    }
  }
}
