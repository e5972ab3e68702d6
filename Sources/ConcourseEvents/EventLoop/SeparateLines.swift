/// Memory that shares no cache line, and no pair of lines that processors fetch together, with anything else.
enum SeparateLines {
  private static var size: Int { 128 }

  static func allocate<Value: ~Copyable>(_ value: consuming Value) -> UnsafeMutablePointer<Value> {
    let bytes = (MemoryLayout<Value>.size + size - 1) / size * size
    let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: size)
      .bindMemory(to: Value.self, capacity: 1)
    memory.initialize(to: value)
    return memory
  }

  /// - Returns: words that share lines with one another only, each with the highest number.
  static func allocateWords(_ count: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    let bytes = (MemoryLayout<Atomic<UInt64>>.stride * count + size - 1) / size * size
    let words = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: size)
      .bindMemory(to: Atomic<UInt64>.self, capacity: count)
    for index in 0..<count { (words + index).initialize(to: Atomic<UInt64>(.max)) }
    return words
  }

  static func deallocate<Value: ~Copyable>(_ memory: UnsafeMutablePointer<Value>, count: Int = 1) {
    memory.deinitialize(count: count)
    memory.deallocate()
  }
}
