import FoundationEssentials

/// JSON by FoundationEssentials, the part of Foundation that does not import Dispatch.
enum JSON {
  static func encode(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(value) else { fatalError("a value that cannot be encoded as JSON") }
    return [UInt8](data)
  }

  static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }
}
