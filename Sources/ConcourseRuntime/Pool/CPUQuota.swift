/// The processor time that the control groups of this process grant it.
///
/// A container with a quota still sees all processors of its machine. A pool as wide as the machine then
/// spends its quota early in each period and is stopped, with all its threads, for the rest of it: the
/// whole program hiccups ten times a second. The pool is therefore no wider than the quota.
///
/// A group cannot use more than its ancestors, and orchestrators often set the limit one or two levels up. So all
/// ancestors that can be seen count.
enum CPUQuota {
  /// The quota as a number of processors; nil without a limit. A file that cannot be read or understood counts as
  /// no limit: a pool that is too wide is slow for a while; one that is too narrow stays slow.
  ///
  /// The tree is looked up afresh each time, because a process can be moved to another group. That costs
  /// two files of /proc and one or two small files per level.
  ///
  /// - Parameter root: put before every path, for tests.
  static func processors(root: String = "") -> Double? {
    guard let tree = CgroupTree.ofThisProcess(root: root) else { return nil }
    var least: Double?
    tree.forEachLevel { level in
      let limit =
        switch tree.version {
        case .one: limitOfVersionOne(level)
        case .two: limitOfVersionTwo(level)
        }
      if let limit { least = min(least ?? limit, limit) }
    }
    return least
  }

  /// Whether files can be opened now: false if the process has no descriptor or memory left.
  static var canBeRead: Bool { CgroupTree.canRead }

  /// The number of workers that may run at once: at least 1, at most `affinity`.
  ///
  /// The quota is rounded up. Of a quota of 1.5, one worker would leave a third unused for as long as the
  /// process lives; two workers use it all, and are stopped for a quarter of a period only when both
  /// are busy throughout.
  ///
  /// - Parameters:
  ///   - affinity: processors that the process may run on.
  ///   - quota: what `processors` returned.
  static func width(affinity: Int, quota: Double?) -> Int {
    // The comparison comes before the conversion, which would trap on a huge value.
    guard let quota, quota < Double(affinity) else { return max(1, affinity) }
    return quota > 1 ? Int(quota.rounded(.up)) : 1
  }

  // MARK: One level

  /// Two files: the quota, -1 without a limit, and the period, both in microseconds.
  private static func limitOfVersionOne(_ level: [UInt8]) -> Double? {
    guard let quota = number(in: level + "/cpu.cfs_quota_us".utf8),
      let period = number(in: level + "/cpu.cfs_period_us".utf8)
    else { return nil }
    return quota / period
  }

  /// One file: the quota, "max" without a limit, and the period, both in microseconds.
  private static func limitOfVersionTwo(_ level: [UInt8]) -> Double? {
    guard let text = CgroupTree.contents(of: level + "/cpu.max".utf8) else { return nil }
    let words = text.split(separator: UInt8(ascii: " "))
    guard words.count == 2, let quota = positive(words[0]), let period = positive(words[1]) else {
      return nil
    }
    return quota / period
  }

  private static func number(in file: [UInt8]) -> Double? {
    CgroupTree.contents(of: file).flatMap { positive($0[...]) }
  }

  /// The number in the text; nil if the text is not a number above zero.
  private static func positive(_ text: ArraySlice<UInt8>) -> Double? {
    guard let value = Int64(String(decoding: text, as: UTF8.self)), value > 0 else { return nil }
    return Double(value)
  }
}
