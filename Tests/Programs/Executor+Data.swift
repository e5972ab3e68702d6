import Glibc

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Executor {
  /// Performs a data program. Returns what each step shows, as `DataProgram.expected`.
  func perform(_ program: DataProgram, of number: Int) -> [[UInt8]] {
    var registers = [DispatchData](repeating: .empty, count: 4)
    return program.steps.map { step, operation in
      switch operation {
      case .make(let to, let count, let isOwned):
        registers[to] = make(step, count, isOwned, number)
        return Array(registers[to])
      case .append(let from, let to):
        if fault == .appendIsSwapped {
          var swapped = registers[from]
          swapped.append(registers[to])
          registers[to] = swapped
        } else {
          registers[to].append(registers[from])
        }
        return Array(registers[to])
      case .subrange(let to, let from, let a, let b):
        var range = DataProgram.range(a, b, in: registers[from].count)
        if fault == .subrangeIsShort, range.count > 1 { range = range.lowerBound..<range.upperBound - 1 }
        registers[to] = registers[from].subdata(in: range)
        return Array(registers[to])
      case .map(let from):
        let count = registers[from].count
        #if !CONCOURSE
          // The toolchain's Swift interface traps.
          if count == 0 { return [] }
        #endif
        return registers[from].withUnsafeBytes { (bytes: UnsafePointer<UInt8>) in
          Array(UnsafeBufferPointer(start: bytes, count: count))
        }
      case .regions(let from): return regions(of: registers[from])
      case .stop(let from):
        var visits = 0
        registers[from].enumerateBytes { _, _, stop in
          visits += 1
          stop = true
        }
        return [visits == min(registers[from].count, 1) ? 1 : 0]
      case .region(let from, let at): return [agrees(registers[from], at) ? 1 : 0]
      case .copy(let from, let a, let b):
        let range = DataProgram.range(a, b, in: registers[from].count)
        guard !range.isEmpty else { return [] }
        return [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
          registers[from].copyBytes(to: UnsafeMutableRawBufferPointer(buffer), from: range)
          count = range.count
        }
      case .slice(let from, let a, let b):
        return Array(registers[from][DataProgram.range(a, b, in: registers[from].count)])
      case .iterate(let from):
        var bytes: [UInt8] = []
        for byte in registers[from] { bytes.append(byte) }
        return bytes
      case .byte(let from, let at):
        return registers[from].isEmpty ? [] : [registers[from][at % registers[from].count]]
      }
    }
  }

  private func make(_ step: Int, _ count: Int, _ isOwned: Bool, _ number: Int) -> DispatchData {
    let bytes = DataProgram.bytes(step: step, count: count)
    guard isOwned, count > 0 else { return bytes.withUnsafeBytes { DispatchData(bytes: $0) } }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
    buffer.copyBytes(from: bytes)
    if fault == .bufferIsFreedEarly { memset(buffer.baseAddress!, 0xEE, count) }
    // SAFETY: the deallocator is the buffer's only user by then. It spoils the bytes for readers that come
    // too late.
    nonisolated(unsafe) let memory = buffer
    let free: @Sendable () -> Void = { [self] in
      memset(memory.baseAddress!, 0xEE, count)
      memory.deallocate()
      note(.freed, number)
    }
    return DispatchData(
      bytesNoCopy: UnsafeRawBufferPointer(buffer), deallocator: .custom(.global(), free))
  }

  /// The bytes of all regions; their offsets must be in order and without gaps (S116).
  private func regions(of data: DispatchData) -> [UInt8] {
    var bytes: [UInt8] = []
    var isOrdered = true
    data.enumerateBytes { region, offset, _ in
      isOrdered = isOrdered && offset == bytes.count
      bytes += region
    }
    return isOrdered ? bytes : [0xEE]
  }

  /// Whether the region at a position contains it, and agrees with the bytes there (S117).
  private func agrees(_ data: DispatchData, _ position: Int) -> Bool {
    guard data.count > 0 else { return true }
    let position = position % data.count
    let (region, offset) = data.region(location: position)
    return offset <= position && position < offset + region.count && offset + region.count <= data.count
      && Array(region) == Array(data.subdata(in: offset..<offset + region.count))
  }
}
