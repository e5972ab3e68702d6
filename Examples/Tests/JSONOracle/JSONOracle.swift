internal import Foundation

/// A judge of JSON text that shares no code with the writer under test.
package enum JSONOracle {
  /// A JSON value as plain Swift: dictionaries, arrays, strings and integers.
  package indirect enum Value: Sendable, Equatable {
    case object([String: Value])
    case array([Value])
    case string(String)
    case number(Int)
    case other

    package subscript(key key: String) -> Value? {
      if case .object(let members) = self { members[key] } else { nil }
    }

    package var elements: [Value] {
      if case .array(let elements) = self { elements } else { [] }
    }
  }

  /// Parses one JSON text; throws if it is not valid JSON.
  package static func parse(_ bytes: [UInt8]) throws -> Value {
    convert(try JSONSerialization.jsonObject(with: Data(bytes)))
  }

  private static func convert(_ object: Any) -> Value {
    switch object {
    case let members as [String: Any]: .object(members.mapValues(convert))
    case let elements as [Any]: .array(elements.map(convert))
    case let text as String: .string(text)
    case let number as NSNumber: .number(number.intValue)
    default: .other
    }
  }
}
