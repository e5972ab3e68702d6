/// The model has no control groups: an execution must not depend on where it runs.
enum CPUQuota {
  static func processors(root: String = "") -> Double? { nil }

  static func width(affinity: Int, quota: Double?) -> Int { affinity }
}
