internal import CConcourse

extension Runtime {
  /// The process's one runtime. The model build replaces this file, to begin each execution afresh.
  static let shared = Runtime()

  /// The root queues by level, without the look at whether the runtime has been made: no queue exists
  /// before it has.
  @inline(__always)
  static var rootTable: UnsafeMutablePointer<Unmanaged<RootQueue>> {
    // SAFETY: `publish` stored exactly this type, before the first queue was made.
    concourse_roots()!.assumingMemoryBound(to: Unmanaged<RootQueue>.self)
  }

  /// Makes the tables of a new runtime reachable without it.
  static func publish(_ runtime: Runtime) {
    concourse_set_roots(UnsafeMutableRawPointer(runtime.roots))
  }
}
