/// Coroutines have no place in a program.
enum CallPlace {
  static func description(from frame: UInt) -> String? { nil }
}
