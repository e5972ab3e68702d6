/// Coroutines have no place in a program.
enum CallPlace {
  static func descriptions(from frames: [UInt]) -> [String?] { frames.map { _ in nil } }
}
