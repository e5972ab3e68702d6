/// A piece of memory from the system that holds only nodes. It starts at a multiple of its size, so the address of a
/// node gives its slab.
typealias NodeSlab = UnsafeMutablePointer<NodeSlabHeader>

/// The start of a slab.
///
/// GUARDED BY the lock of `NodeDepot`, but for the stride, which is constant.
struct NodeSlabHeader {
  /// Nodes given back, linked through their `next`.
  fileprivate var free: NodePointer?
  /// Index of the first node that has not been handed out since the slab was last empty.
  fileprivate var untouched = 0
  /// Number of nodes handed out and not given back: they are in lists, in magazines or in the depot.
  fileprivate var outstanding = 0
  /// The slab's neighbours in its list, if it is in one (`NodeSlabs`).
  fileprivate var previous: NodeSlab?
  fileprivate var next: NodeSlab?
  /// The distance of its nodes from each other, in bytes.
  let stride = NodeSlab.strideOfNew.value
}

/// Nodes on their way from a slab to a magazine.
enum NodeSupply {
  /// Linked through `next`, nil at the end.
  case chain(NodePointer, count: UInt32)
  /// Adjacent nodes in raw memory. If they are the first nodes of a slab that will probably be used up, `opening` is
  /// that slab.
  case row(NodePointer, count: UInt32, opening: NodeSlab? = nil)

  /// The nodes as a chain. Call without the lock: linking a row touches new pages.
  func linked() -> (first: NodePointer, count: UInt32) {
    switch self {
    case .chain(let first, let count):
      return (first, count)
    case .row(let first, let count, let opened):
      if let opened { SystemMemory.populate(UnsafeMutableRawPointer(opened), NodeSlab.size) }
      var node = first
      for index in 1...count {
        let next = node.following()
        // SAFETY: raw memory of the right size; only `next` is initialised, as WorkNode documents.
        UnsafeMutableRawPointer(node).initializeMemory(
          as: Atomic<NodePointer?>.self, to: Atomic(index < count ? next : nil))
        node = next
      }
      return (first, count)
    }
  }
}

extension UnsafeMutablePointer where Pointee == WorkNode {
  /// The node behind this one in its slab, or another further on.
  fileprivate func following(_ count: UInt32 = 1) -> NodePointer {
    // SAFETY: within the slab, or at its end.
    (UnsafeMutableRawPointer(self) + Int(count) * Int(NodeSlab(of: self).pointee.stride))
      .assumingMemoryBound(to: WorkNode.self)
  }
}

extension UnsafeMutablePointer where Pointee == NodeSlabHeader {
  /// Size and alignment of a slab, in bytes.
  static var size: Int { 1 << 16 }

  /// The stride of slabs that are made from now on. The pool sets it: where many threads exchange nodes, a node has a
  /// cache line of its own; where few do, more nodes in a line are worth more.
  static let strideOfNew = SeldomChanged<UInt>(dense)
  static let dense = UInt(MemoryLayout<WorkNode>.stride)
  static let spread: UInt = 64

  /// Nodes in a slab: as many whole batches as fit beside the header.
  static func capacity(stride: UInt) -> Int {
    let batch = Int(NodeMagazine.batch)
    return (size - MemoryLayout<NodeSlabHeader>.stride) / Int(stride) / batch * batch
  }

  var capacity: Int { Self.capacity(stride: pointee.stride) }

  /// The slab of `node`.
  init(of node: NodePointer) {
    // SAFETY: every node is in a slab, whose header is at the next lower multiple of the size.
    self = UnsafeMutableRawPointer(bitPattern: UInt(bitPattern: node) & ~UInt(Self.size - 1))!
      .assumingMemoryBound(to: NodeSlabHeader.self)
  }

  /// Makes a slab in unused memory.
  static func create(at start: UnsafeMutableRawPointer) -> NodeSlab {
    SystemMemory.notePointers(in: start, size, true)
    return start.initializeMemory(as: NodeSlabHeader.self, to: NodeSlabHeader())
  }

  fileprivate var isEmpty: Bool { pointee.outstanding == 0 }
  fileprivate var isExhausted: Bool { pointee.outstanding == capacity }

  fileprivate func node(_ index: Int) -> NodePointer {
    // SAFETY: within the slab. The nodes end where the slab ends, which aligns the first.
    (UnsafeMutableRawPointer(self) + Self.size - (capacity - index) * Int(pointee.stride))
      .assumingMemoryBound(to: WorkNode.self)
  }

  /// Hands out up to a batch of nodes; the slab must not be exhausted.
  fileprivate func take() -> NodeSupply {
    guard let first = pointee.free else {
      let count = Swift.min(Int(NodeMagazine.batch), capacity - pointee.untouched)
      defer { pointee.untouched += count }
      pointee.outstanding += count
      return .row(node(pointee.untouched), count: UInt32(count))
    }
    var last = first
    var count: UInt32 = 1
    // ORDERING: relaxed here and below; guarded by the lock.
    while count < NodeMagazine.batch, let next = last.pointee.next.load(ordering: .relaxed) {
      last = next
      count += 1
    }
    // ORDERING: relaxed; as above.
    pointee.free = last.pointee.next.load(ordering: .relaxed)
    last.pointee.next.store(nil, ordering: .relaxed)
    pointee.outstanding += Int(count)
    return .chain(first, count: count)
  }

  /// Takes back a chain of this slab's nodes.
  fileprivate func giveBack(_ first: NodePointer, _ last: NodePointer, count: Int) {
    pointee.outstanding -= count
    if isEmpty {
      // As a new slab, except that its pages already exist.
      (pointee.free, pointee.untouched) = (nil, 0)
    } else {
      // ORDERING: relaxed; guarded by the lock.
      last.pointee.next.store(pointee.free, ordering: .relaxed)
      pointee.free = first
    }
  }
}

/// All slabs with free nodes. An exhausted slab is in no list: a node that comes back leads to it.
///
/// GUARDED BY the lock of `NodeDepot`.
struct NodeSlabs {
  /// The number of empty slabs that stay. The surplus returns to the system only when there are more than twice as
  /// many, so that a load that rises and falls does not map memory each time.
  static let kept = 16
  /// Slabs mapped at once.
  private static let mappedAtOnce = 16

  /// Slabs with some nodes handed out.
  private var partial = NodeSlabList()
  /// Slabs with no node handed out.
  private var empty = NodeSlabList()
  /// Mapped memory for slabs not made yet, and their number.
  private var unmade: UnsafeMutableRawPointer?
  private var unmadeCount = 0
  /// Number of slabs that exist, exhausted ones included.
  private var madeCount = 0

  /// Up to a batch of nodes, from partly used slabs if there are any, so that others can become empty.
  mutating func take() -> NodeSupply {
    let slab = partial.first ?? openSlab()
    let isOpening = slab.isEmpty && madeCount > Self.kept
    let supply = slab.take()
    if slab.isExhausted { partial.remove(slab) }
    if isOpening, case .row(let first, let count, _) = supply {
      // The backlog grows: one system call for all pages costs far less than a fault for each.
      return .row(first, count: count, opening: slab)
    }
    return supply
  }

  /// Takes back a chain of nodes, which may be of different slabs.
  /// - Returns: slabs to release without the lock.
  mutating func giveBack(_ chain: NodePointer) -> NodeSlabList? {
    var rest: NodePointer? = chain
    while let first = rest {
      let slab = NodeSlab(of: first)
      var (last, count) = (first, 1)
      // ORDERING: relaxed; guarded by the lock.
      rest = last.pointee.next.load(ordering: .relaxed)
      // Neighbours in a chain are mostly of one slab.
      while let next = rest, NodeSlab(of: next) == slab {
        (last, count) = (next, count + 1)
        // ORDERING: relaxed; as above.
        rest = next.pointee.next.load(ordering: .relaxed)
      }
      if slab.isExhausted { partial.prepend(slab) }
      slab.giveBack(first, last, count: count)
      if slab.isEmpty {
        partial.remove(slab)
        empty.prepend(slab)
      }
    }
    guard empty.count > 2 * Self.kept else { return nil }
    madeCount -= empty.count - Self.kept
    return empty.split(after: Self.kept)
  }

  private mutating func openSlab() -> NodeSlab {
    let slab = empty.first ?? makeSlab()
    if empty.first == slab { empty.remove(slab) }
    partial.prepend(slab)
    return slab
  }

  /// The nodes of a new slab, which is in no list until some of them come back.
  mutating func openWhole() -> NodePointer {
    let slab = makeSlab()
    (slab.pointee.untouched, slab.pointee.outstanding) = (slab.capacity, slab.capacity)
    return slab.node(0)
  }

  private mutating func makeSlab() -> NodeSlab {
    if unmadeCount == 0 {
      let size = Self.mappedAtOnce * NodeSlab.size
      guard let memory = SystemMemory.map(size, alignment: NodeSlab.size) else {
        Trap.outOfMemory("the system refused \(size) bytes for submitted items")
      }
      (unmade, unmadeCount) = (memory, Self.mappedAtOnce)
    }
    let start = unmade!
    unmade = start + NodeSlab.size
    unmadeCount -= 1
    madeCount += 1
    return .create(at: start)
  }
}

/// New slabs, all of whose nodes count as handed out at once: the depot's lock need not be held to take them, and the
/// nodes that come back lead to their slab as those of any exhausted one.
///
/// GUARDED BY the lock of the reserve.
struct NodeReserve {
  private var slabs = NodeSlabs()
  private var next: NodePointer?
  private var left = 0

  /// A batch of new nodes.
  mutating func take() -> NodeSupply {
    if left == 0 {
      next = slabs.openWhole()
      left = NodeSlab(of: next!).capacity
    }
    let first = next!
    next = first.following(NodeMagazine.batch)
    left -= Int(NodeMagazine.batch)
    return .row(first, count: NodeMagazine.batch)
  }
}

/// A doubly linked list of slabs. A slab is in one list at a time.
struct NodeSlabList {
  private(set) var first: NodeSlab?
  private(set) var count = 0

  mutating func prepend(_ slab: NodeSlab) {
    (slab.pointee.previous, slab.pointee.next) = (nil, first)
    first?.pointee.previous = slab
    first = slab
    count += 1
  }

  mutating func remove(_ slab: NodeSlab) {
    let (previous, next) = (slab.pointee.previous, slab.pointee.next)
    if let previous { previous.pointee.next = next } else { first = next }
    next?.pointee.previous = previous
    (slab.pointee.previous, slab.pointee.next) = (nil, nil)
    count -= 1
  }

  /// Cuts the list after its first `length` slabs; it must have more.
  /// - Returns: the others.
  mutating func split(after length: Int) -> NodeSlabList {
    var last = first!
    for _ in 1..<length { last = last.pointee.next! }
    var others = NodeSlabList()
    (others.first, others.count) = (last.pointee.next, count - length)
    others.first?.pointee.previous = nil
    last.pointee.next = nil
    count = length
    return others
  }

  /// Returns the memory of all slabs to the system, adjacent slabs in one call.
  consuming func release() {
    var rest = first
    while let slab = rest {
      var start = UnsafeMutableRawPointer(slab)
      var end = start + NodeSlab.size
      rest = slab.pointee.next
      while let next = rest.map({ UnsafeMutableRawPointer($0) }), next == end || next + NodeSlab.size == start
      {
        (start, end) = (min(start, next), max(end, next + NodeSlab.size))
        rest = rest!.pointee.next
      }
      for piece in stride(from: start, to: end, by: NodeSlab.size) {
        SystemMemory.notePointers(in: piece, NodeSlab.size, false)
      }
      SystemMemory.unmap(start, end - start)
    }
  }
}
