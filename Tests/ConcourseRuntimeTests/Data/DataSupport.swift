// Shared by the tests of data.

import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// Data with a copy of some bytes, in one region.
func data(_ bytes: some Sequence<UInt8>) -> DispatchData {
  Array(bytes).withUnsafeBytes { DispatchData(bytes: $0) }
}

/// Data with a copy of a text, in one region.
func data(_ text: String) -> DispatchData { data(text.utf8) }

/// Data of several regions.
func data(regions texts: String...) -> DispatchData {
  texts.reduce(into: .empty) { $0.append(data($1)) }
}

/// The bytes in two regions.
func data(_ bytes: [UInt8], cutAt place: Int) -> DispatchData {
  var value = data(bytes[..<place])
  value.append(data(bytes[place...]))
  return value
}

/// The numbers from 0 to `count`, modulo 256.
func counting(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) } }

extension DispatchData {
  /// The bytes, read with `enumerateBytes`.
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    enumerateBytes { region, position, _ in
      #expect(position == bytes.count)
      bytes.append(contentsOf: region)
    }
    return bytes
  }

  var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The regions with their positions.
  var regions: [String] {
    var regions: [String] = []
    enumerateBytes { region, position, _ in
      regions.append("\(position):\(String(decoding: region, as: UTF8.self))")
    }
    return regions
  }

  /// The addresses of the regions.
  var addresses: [UnsafePointer<UInt8>] {
    var addresses: [UnsafePointer<UInt8>] = []
    enumerateBytes { region, _, _ in addresses.append(region.baseAddress!) }
    return addresses
  }

  /// Expects that the object's structure matches its header.
  func expectSoundness(sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(DispatchData.faults(of: object, isRoot: true) == [], sourceLocation: sourceLocation)
  }

  private static func faults(of object: DataObject, isRoot: Bool) -> [String] {
    guard object.level > 0 else {
      return (object.count == 0) == (object === DataObject.empty) ? [] : ["empty, but not the empty object"]
    }
    let node = object.asTree
    var faults: [String] = []
    if node.pieces.count > DataTree.most { faults.append("\(node.pieces.count) pieces") }
    if node.pieces.count < (isRoot ? 2 : DataTree.least) { faults.append("\(node.pieces.count) pieces") }
    let pieces = (0..<node.pieces.count).map { node.pieces[$0] }
    if pieces.reduce(0, { $0 + $1.count }) != node.count { faults.append("counts do not add up") }
    for piece in pieces {
      if piece.count == 0 { faults.append("an empty piece") }
      if piece.owner.level != node.level - 1 { faults.append("levels \(node.level), \(piece.owner.level)") }
      if (piece.start == nil) != (node.level > 1) { faults.append("a start at level \(node.level)") }
      if node.level > 1 {
        if piece.owner.count != piece.count { faults.append("a piece of another length than its node") }
        faults += DispatchData.faults(of: piece.owner, isRoot: false)
      }
    }
    return faults
  }
}

extension Sanitizer {
  /// Whether `malloc` refuses more than any machine has. The sanitizers' `malloc` ends the process.
  static var allowsHugeRequests: Bool { !isOn }
}
