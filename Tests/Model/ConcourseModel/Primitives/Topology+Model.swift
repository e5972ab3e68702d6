extension Topology {
  /// One shard, however many processors a scenario sets, but for `Model.setTopology`.
  static func ofProcess() -> Topology? { nil }
}
