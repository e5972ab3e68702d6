/// A type of the engine as the examined process itself describes it: where its fields are. So one command reads debug
/// and release builds.
struct SwiftType {
  let metadata: UInt64
  let name: String
  /// Of an object of a class, else 0.
  let size: Int
  /// The superclass's metadata, or 0.
  let parent: UInt64
  /// Offsets of a class's or structure's own fields.
  private(set) var fields: [String: UInt64] = [:]
  /// Whether it is an actor's class.
  let isActor: Bool
  /// The cases of an enumeration, in order.
  private(set) var cases: [String] = []

  private enum Kind: UInt32 {
    case aClass = 16
    case structure = 17
    case enumeration = 18
  }

  private static let actorFlag: UInt32 = 1 << 23

  /// nil if there is no type at this address.
  init?(metadata: UInt64, in memory: any TargetMemory) {
    // A class begins with 0, or on some systems with an address; other types have small numbers there.
    guard let first = memory.word(metadata) else { return nil }
    let isClass = first == 0 || first > 0x7FF
    guard let descriptor = memory.word(metadata &+ (isClass ? 40 : 8)),
      let flags: UInt32 = memory.number(at: descriptor), let kind = Kind(rawValue: flags & 0x1F),
      (kind == .aClass) == isClass,
      let nameAddress = memory.relative(at: descriptor &+ 8), let name = memory.text(at: nameAddress)
    else { return nil }
    self.metadata = metadata
    self.name = name
    isActor = isClass && flags & Self.actorFlag != 0
    parent = isClass ? memory.word(metadata &+ 8) ?? 0 : 0
    size = isClass ? Int(memory.number(at: metadata &+ 24, as: UInt32.self) ?? 0) : 0
    guard let names = Self.fieldNames(memory.relative(at: descriptor &+ 16), in: memory) else { return nil }
    if kind == .enumeration {
      cases = names
      return
    }
    guard let place: UInt32 = memory.number(at: descriptor &+ (isClass ? 40 : 24)), place > 0 || names.isEmpty
    else {
      return nil
    }
    for (index, name) in names.enumerated() {
      let vector = metadata &+ UInt64(place) * 8
      let offset =
        isClass
        ? memory.word(vector &+ UInt64(index) * 8)
        : memory.number(at: vector &+ UInt64(index) * 4, as: UInt32.self).map(UInt64.init)
      guard let offset, offset < 1 << 20 else { return nil }
      fields[name] = offset
    }
  }

  private static func fieldNames(_ descriptor: UInt64?, in memory: any TargetMemory) -> [String]? {
    guard let descriptor else { return [] }
    guard let size: UInt16 = memory.number(at: descriptor &+ 10), size >= 12,
      let count: UInt32 = memory.number(at: descriptor &+ 12), count < 1000
    else { return nil }
    var names: [String] = []
    for index in 0..<UInt64(count) {
      guard let name = memory.relative(at: descriptor &+ 16 &+ index * UInt64(size) &+ 8),
        let text = memory.text(at: name)
      else { return nil }
      names.append(text)
    }
    return names
  }
}

/// The types that the engine exports to the command.
struct EngineTypes {
  struct Missing: Error {
    let what: String
  }

  /// The engine's classes have fewer superclasses.
  private static let mostParents = 16

  private var byName: [String: SwiftType] = [:]
  private(set) var byMetadata: [UInt64: SwiftType] = [:]

  init(_ addresses: [UInt64], in memory: any TargetMemory) {
    for address in addresses where address != 0 {
      guard let type = SwiftType(metadata: address, in: memory) else { continue }
      byName[type.name] = type
      byMetadata[address] = type
    }
    // Fields of superclasses, such as DispatchObject, which is not exported itself.
    for address in addresses {
      var parent = byMetadata[address]?.parent ?? 0
      for _ in 0..<Self.mostParents {
        guard parent != 0, byMetadata[parent] == nil, let type = SwiftType(metadata: parent, in: memory)
        else { break }
        byName[type.name] = type
        byMetadata[parent] = type
        parent = type.parent
      }
    }
  }

  /// nil if the process has no such type, such as the sources in a program without ConcourseEvents.
  subscript(_ name: String) -> SwiftType? { byName[name] }

  /// The offset of a field.
  func offset(_ type: String, _ field: String) throws(Missing) -> UInt64 {
    guard let offset = byName[type]?.fields[field] else { throw Missing(what: "\(type).\(field)") }
    return offset
  }

  /// Whether a class is another one or inherits it.
  func isKind(_ type: SwiftType, of name: String) -> Bool {
    var link: SwiftType? = type
    // What the process says may lead in a circle.
    for _ in 0..<Self.mostParents {
      guard let type = link else { return false }
      if type.name == name { return true }
      link = byMetadata[type.parent]
    }
    return false
  }
}
