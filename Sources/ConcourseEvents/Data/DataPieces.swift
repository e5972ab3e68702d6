internal import Glibc

/// The pieces of one tree node, in order. They are in plain memory; copying it retains each owner once more.
struct DataPieces: ~Copyable {
  /// A piece in that memory. References are counted explicitly, so that pieces can be moved as plain memory.
  struct Slot {
    /// The object that keeps the bytes.
    // SAFETY: valid while the node has the piece, which counts as one reference.
    fileprivate(set) var owner: Unmanaged<DataObject>
    let start: UnsafeRawPointer?
    fileprivate(set) var count: Int

    var piece: DataPiece { DataPiece(owner: owner.takeUnretainedValue(), start: start, count: count) }

    fileprivate init(_ piece: DataPiece) {
      owner = .passRetained(piece.owner)
      start = piece.start
      count = piece.count
    }
  }

  // SAFETY: memory that only this value uses; the first `count` slots are initialized.
  private var slots: UnsafeMutablePointer<Slot>
  private var room: Int
  private(set) var count: Int

  init(room: Int) {
    slots = Self.memory(nil, room)
    self.room = room
    count = 0
  }

  init(_ first: DataPiece, _ second: DataPiece) {
    self.init(room: 2)
    append(first)
    append(second)
  }

  /// - Parameter more: room for this many further pieces.
  init(copying other: borrowing DataPieces, more: Int) {
    self.init(room: other.count + more)
    count = other.count
    slots.initialize(from: other.slots, count: count)
    for index in 0..<count { _ = slots[index].owner.retain() }
  }

  deinit {
    for index in 0..<count { slots[index].owner.release() }
    free(slots)
  }

  private static func memory(_ former: UnsafeMutablePointer<Slot>?, _ room: Int) -> UnsafeMutablePointer<Slot>
  {
    guard let memory = realloc(former, room * MemoryLayout<Slot>.stride) else {
      Trap.outOfMemory("the system refused memory for \(room) pieces of data")
    }
    // SAFETY: plain memory, used for slots only.
    return memory.assumingMemoryBound(to: Slot.self)
  }

  private mutating func makeRoom(for more: Int) {
    let needed = count + more
    guard needed > room else { return }
    // One more than a node keeps, until it is split.
    room = max(needed, min(2 * room, DataTree.most + 1))
    slots = Self.memory(slots, room)
  }

  // MARK: Looking

  /// A piece, with a reference of its own.
  subscript(_ index: Int) -> DataPiece { slot(index).piece }

  /// A piece that is not retained: valid as long as the node has it.
  @inline(__always)
  func slot(_ index: Int) -> Slot {
    precondition(index < count)
    return slots[index]
  }

  /// All pieces.
  // SAFETY: valid as long as the node is neither changed nor gone.
  var row: UnsafeBufferPointer<Slot> {
    @inline(__always) get { UnsafeBufferPointer(start: slots, count: count) }
  }

  /// How many bytes all pieces have together.
  var size: Int {
    var size = 0
    for index in 0..<count { size += slots[index].count }
    return size
  }

  // MARK: Changing

  mutating func append(_ piece: DataPiece) {
    makeRoom(for: 1)
    slots[count] = Slot(piece)
    count += 1
  }

  mutating func prepend(_ piece: DataPiece) {
    shift(by: 1)
    slots[0] = Slot(piece)
  }

  /// Moves pieces between the end of this row and the front of the next one, so that `first` are in this one.
  mutating func level(with next: inout DataPieces, first: Int) {
    let moved = abs(count - first)
    if count > first {
      next.shift(by: moved)
      next.slots.update(from: slots + first, count: moved)
      count = first
    } else {
      makeRoom(for: moved)
      (slots + count).update(from: next.slots, count: moved)
      count = first
      next.count -= moved
      next.slots.update(from: next.slots + moved, count: next.count)
    }
  }

  private mutating func shift(by places: Int) {
    makeRoom(for: places)
    (slots + places).update(from: slots, count: count)
    count += places
  }

  /// Makes a piece longer or shorter.
  mutating func setCount(_ count: Int, at index: Int) { slots[index].count = count }

  /// The child node at `index`, replaced by a copy if other trees share it.
  mutating func ownNode(at index: Int) -> DataTree {
    precondition(index < count)
    // SAFETY: the slot's reference is taken out; it, or its replacement, is put in again.
    var owner = slots[index].owner.takeRetainedValue()
    if !isKnownUniquelyReferenced(&owner) { owner = owner.asTree.copy() }
    slots[index].owner = .passRetained(owner)
    return owner.asTree
  }
}
