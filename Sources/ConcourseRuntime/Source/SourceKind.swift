/// The kinds of sources, by the name that messages give them.
enum SourceKind: String {
  case timer, signal, read, write, process
  case fileSystemObject = "file-system object"
  case memoryPressure = "memory pressure"
  case userDataAdd = "user data add"
  case userDataOr = "user data or"
  case userDataReplace = "user data replace"

  /// What `handle` is, if the kind has one.
  var handleName: String? {
    switch self {
    case .timer, .memoryPressure, .userDataAdd, .userDataOr, .userDataReplace: nil
    case .signal: "signal"
    case .read, .write, .fileSystemObject: "descriptor"
    case .process: "process"
    }
  }
}
