/// One place on a stack.
struct StackEntry {
  enum Origin {
    case engine, system, client
  }

  let address: UInt64
  var image: String
  /// As the linker knows it; nil if there is no symbol.
  var symbol: String?
  /// For people.
  var function: String
  var file: String?
  var line: Int?
  var origin: Origin
  /// Whether the compiler made it: it only passes a call on.
  var isThunk = false
}
