extension Topology {
  /// The model has one shard, however many processors a scenario sets: executions must not depend on the machine.
  static func ofProcess() -> Topology { Topology(processors: Processor.affinityCount) }
}
