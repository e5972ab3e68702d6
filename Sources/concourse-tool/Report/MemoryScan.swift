/// Looks through the writable memory of the process for objects of the engine, which keeps no list of them, for tasks
/// of Swift Concurrency, and for the thread pointers of its threads.
struct MemoryScan {
  /// Addresses of what looks like an object, and of its class's metadata.
  private(set) var objects: [(address: UInt64, metadata: UInt64)] = []
  /// Addresses of what looks like a task.
  private(set) var tasks: [UInt64] = []
  /// Thread pointers of what looks like a thread's control block.
  private(set) var threadPointers: [UInt64] = []
  private(set) var bytesRead: UInt64 = 0

  /// No real process has more tasks and threads than this, or more objects of the engine.
  private static let (mostTasks, mostThreads, mostObjects) = (1_000_000, 1_000_000, 8_000_000)

  /// - Parameter taskClass: The class of tasks; 0 leaves them out.
  init(
    of process: TargetProcess, classes: [UInt64], taskClass: UInt64 = 0, _ blocks: ThreadBlocks,
    thisFar limit: UInt64 = 64 << 30
  ) {
    let wanted = Set(classes)
    guard let least = wanted.min(), let most = wanted.max() else { return }
    let span = most - least
    let taskClass = taskClass == 0 ? .max : taskClass
    let pieceSize = 1 << 20
    // Larger than any heap: the shadow memory of a sanitizer, whose page table alone takes minutes to read.
    let reserved: UInt64 = 1 << 40
    var piece = [UInt8](repeating: 0, count: pieceSize)
    for region in process.regions
    where region.isReadable && region.isWritable && region.isPrivate && region.end - region.start < reserved {
      for range in process.memory.populated(region) {
        var place = range.lowerBound
        while place < range.upperBound && bytesRead < limit {
          let count = min(pieceSize, Int(range.upperBound - place))
          piece.withUnsafeMutableBytes { bytes in
            let part = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
            guard process.memory.read(place, into: part) else { return }
            // SAFETY: within the piece, and every multiple of 16 is aligned for a word.
            let words = UnsafeRawPointer(part.baseAddress!)
            var offset = 0
            while offset + 16 <= count {
              let word = words.load(fromByteOffset: offset, as: UInt64.self)
              if word == taskClass {
                if tasks.count < Self.mostTasks { tasks.append(place + UInt64(offset)) }
              } else if word &- least <= span {
                if wanted.contains(word), objects.count < Self.mostObjects {
                  objects.append((place + UInt64(offset), word))
                }
              } else if word == place &+ UInt64(offset), offset + 24 <= count,
                !blocks.isTwice
                  || word % 64 == 0 && words.load(fromByteOffset: offset + 16, as: UInt64.self) == word
              {
                if threadPointers.count < Self.mostThreads { threadPointers.append(word &+ blocks.pointer) }
              }
              offset += 16
            }
          }
          bytesRead += UInt64(count)
          place += UInt64(count)
        }
      }
    }
  }
}

/// The nodes of queues, by the node that they are linked to: a queue's owner remembers the first of its nodes on its
/// own stack, so only the last one is known from outside, and the others are found backwards.
struct NodeIndex {
  private var before: [UInt64: UInt64] = [:]

  /// How far the nodes of a slab may be from each other.
  static let strides: [UInt64] = [48, 64]
  /// Where a slab's header says it.
  static let placeOfStride: Int = 40
  private static let slabSize: UInt64 = 1 << 16
  private static let headerSize: UInt64 = 48
  private static let batch: UInt64 = 64

  /// Nodes of one slab: as many whole batches as fit beside the header. They end where the slab ends.
  static func capacity(stride: UInt64) -> UInt64 { (slabSize - headerSize) / stride / batch * batch }

  init(in process: TargetProcess) {
    for region in process.regions
    where region.isWritable && region.isPrivate && region.path.isEmpty
      && (Self.slabSize..<1 << 36).contains(region.end - region.start)
    {
      // A slab in use begins with a header. Reading a page that has never been written would cost the process a page
      // table.
      for range in process.memory.populated(region) where region.end - range.lowerBound >= Self.slabSize {
        var slab = (range.lowerBound + Self.slabSize - 1) & ~(Self.slabSize - 1)
        while slab < range.upperBound && region.end - slab >= Self.slabSize {
          index(slab, process.memory)
          slab += Self.slabSize
        }
      }
    }
  }

  private mutating func index(_ slab: UInt64, _ memory: any TargetMemory) {
    guard let untouched = memory.word(slab + 8), let outstanding = memory.word(slab + 16),
      let stride = memory.word(slab + UInt64(Self.placeOfStride)), Self.strides.contains(stride)
    else { return }
    let capacity = Self.capacity(stride: stride)
    guard untouched <= capacity, outstanding > 0, outstanding <= capacity else { return }
    let start = slab + Self.slabSize - capacity * stride
    guard let nodes = memory.bytes(at: start, count: Int(untouched * stride)) else { return }
    for number in 0..<untouched {
      let next: UInt64 = nodes.number(at: Int(number * stride))!
      if next != 0 { before[next] = start + number * stride }
    }
  }

  /// Takes the nodes of a list, the oldest first. A node is in one list only, so all lists together take no longer than
  /// there are nodes, whatever the process says.
  mutating func takeList(endingAt tail: UInt64) -> [UInt64] {
    guard tail != 0 else { return [] }
    var backwards = [tail]
    while let previous = before.removeValue(forKey: backwards.last!), previous != tail {
      backwards.append(previous)
    }
    return backwards.reversed()
  }
}
