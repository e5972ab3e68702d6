extension Runtime {
  /// The process's one runtime. The model build replaces this file, to begin each execution afresh.
  static let shared = Runtime()
}
