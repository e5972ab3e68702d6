internal import CConcourse
internal import Glibc

/// The machine under the engine.
enum Processor {
  /// Tells the processor that this is a spin loop.
  @inline(__always)
  static func pause() { concourse_pause() }

  /// Processors that this process may run on; at least 1.
  static var affinityCount: Int { Int(concourse_affinity_count()) }
}

extension Processor {
  /// Lets another thread have this processor.
  static func yield() { sched_yield() }
}

extension Processor {
  /// A number to tune, of which the model has a smaller one, so that it comes to what is rare.
  @inline(__always)
  static func number(_ value: UInt32, inModel: UInt32) -> UInt32 { value }

  /// A setting from the environment, or nil.
  static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }
}
