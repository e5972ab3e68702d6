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
  /// A tuning constant. The model uses a smaller one, so that it reaches rare paths.
  @inline(__always)
  static func number(_ value: UInt32, inModel: UInt32) -> UInt32 { value }

  /// A setting from the environment, or nil.
  static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }
}
