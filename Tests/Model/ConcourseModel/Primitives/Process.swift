/// The process, in the model: it never forks.
enum Process {
  /// The process id, which is also the id of the scenario's body.
  static var id: UInt32 { 1 }

  static var isForkedChild: Bool { false }
}
