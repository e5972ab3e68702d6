/// The model has no control groups: executions must not depend on the machine.
enum CPUQuota {
  static func processors(root: String = "") -> Double? { nil }

  static let canBeRead = true

  static func width(affinity: Int, quota: Double?) -> Int { affinity }
}
