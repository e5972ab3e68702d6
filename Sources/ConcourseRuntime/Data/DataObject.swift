/// What a `DispatchData` holds, and what the C interface calls a data object: a run of bytes that never
/// changes, made of one region of memory or of many.
///
/// There are three kinds: a `DataBuffer` owns memory, a `DataView` is a part of one buffer, and a
/// `DataTree` is a sequence of regions. Identity means something: joining with empty data gives the other
/// object, the whole range of an object is the object itself, and there is one empty object.
///
/// An object that is referenced once belongs to one variable, which may change it in place (`append`).
/// Nobody else can tell.
// SAFETY: whoever changes a field holds the only reference.
package class DataObject: DispatchObject, @unchecked Sendable {
  /// How many levels of tree nodes stand above the regions; 0 for an object of one region.
  final let level: Int
  /// The first byte of an object of one region. Nil for trees and for the empty object.
  final var start: UnsafeRawPointer?
  /// How many bytes there are.
  final var count: Int

  init(level: Int, start: UnsafeRawPointer?, count: Int) {
    self.level = level
    self.start = start
    self.count = count
    super.init(kind: .data)
  }

  /// The object without bytes. There is only this one.
  package static let empty: DataObject = DataBuffer.makeEmpty()

  /// The object as a part of others.
  var piece: DataPiece { Trap.runtimeBug("a data object of no kind") }

  /// This object as a tree. Only when `level` is not 0.
  @inline(__always)
  final var asTree: DataTree {
    // SAFETY: `DataTree`'s initializer alone sets another level than 0.
    unsafeDowncast(self, to: DataTree.self)
  }

  /// The bytes of an object of one region, or of the empty one.
  final var region: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
}

/// A part of one buffer: what subranges are.
final class DataView: DataObject, @unchecked Sendable {  // SAFETY: as for `DataObject`.
  let owner: DataBuffer

  init(of owner: DataBuffer, start: UnsafeRawPointer, count: Int) {
    self.owner = owner
    super.init(level: 0, start: start, count: count)
  }

  override var piece: DataPiece { DataPiece(owner: owner, start: start, count: count) }
}

/// An element of a tree node: a region of a buffer in a node of level 1, a node below in all others.
struct DataPiece {
  /// What keeps the bytes: a `DataBuffer` or a `DataTree`.
  var owner: DataObject
  /// The first byte of a region; nil for a node.
  var start: UnsafeRawPointer?
  var count: Int

  /// The bytes of a region.
  var region: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  /// The piece as an object of its own.
  var object: DataObject {
    guard let start, start != owner.start || count != owner.count else { return owner }
    // SAFETY: a piece with a start is a region, and regions are owned by buffers.
    return DataView(of: unsafeDowncast(owner, to: DataBuffer.self), start: start, count: count)
  }

  /// A part of a region, as an object of its own.
  func part(from offset: Int, count: Int) -> DataObject {
    DataPiece(owner: owner, start: start! + offset, count: count).object
  }
}
