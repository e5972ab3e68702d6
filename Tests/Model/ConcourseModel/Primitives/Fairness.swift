/// How often a worker departs from its usual order, in the model: often, so that short floods show a starved class.
///
/// Replaces Worker/Fairness.swift.
enum Fairness {
  static var rootPeriod: UInt32 { ModelFaults.rootsNeverGoFirst ? .max : 3 }
  static var slotPeriod: UInt32 { ModelFaults.slotAlwaysGoesFirst ? .max : 2 }
}
