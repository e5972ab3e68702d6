internal import CConcourse
internal import Glibc

/// Reads how much memory is left on the machine and in the control groups around this process.
struct MemoryGauge {
  /// A prefix of every path, for tests.
  let root: String

  /// Reads the current values; nil if nothing can be read.
  func read() -> PressureLevel.Reading? {
    let machine = readMachine()
    var reading = machine.map { PressureLevel.Reading(available: $0.available / $0.total) }
    guard let tree = CgroupTree.ofThisProcess(controller: "memory", root: root) else { return reading }
    var isOwn = true
    tree.forEachLevel { directory in
      if let left = Self.readGroup(directory, tree.version, machineTotal: machine?.total ?? .infinity) {
        var least = reading ?? PressureLevel.Reading(available: 1)
        least.available = min(least.available, left)
        reading = least
      }
      // Our group's counts include those of its subgroups. The counts of its ancestors include other groups.
      if isOwn && tree.version == .two { Self.readEvents(directory, into: &reading) }
      isOwn = false
    }
    return reading
  }

  /// Whether there is nothing to read, rather than no descriptor to read it with.
  var isMissing: Bool { access(root + "/proc/meminfo", F_OK) != 0 && errno == ENOENT }

  /// The PSI file of the control group, if it has one.
  var groupPressureFile: String? {
    guard let tree = CgroupTree.ofThisProcess(controller: "memory", root: root), tree.version == .two else {
      return nil
    }
    var own: String?
    tree.forEachLevel { directory in
      own = own ?? String(decoding: directory, as: UTF8.self) + "/memory.pressure"
    }
    return own
  }

  /// The PSI file of the machine.
  var machinePressureFile: String { root + "/proc/pressure/memory" }

  // MARK: Files

  private func readMachine() -> (available: Double, total: Double)? {
    let wanted = ["MemTotal:": 0, "MemAvailable:": 1]
    var found: [Double?] = [nil, nil]
    CgroupTree.forEachLine(of: Array((root + "/proc/meminfo").utf8)) { line in
      let words = line.split(separator: UInt8(ascii: " "))
      if words.count > 1, let place = wanted[String(decoding: words[0], as: UTF8.self)] {
        found[place] = Self.number(words[1])
      }
      return found.contains { $0 == nil }
    }
    guard let total = found[0], let available = found[1], total > 0 else { return nil }
    // The file counts KiB.
    return (available * 1024, total * 1024)
  }

  /// The fraction of its limit that a group can still use; nil without a limit.
  private static func readGroup(
    _ directory: [UInt8], _ version: CgroupTree.Version, machineTotal: Double
  ) -> Double? {
    let names: (limit: String, used: String, inactive: String, active: String)
    switch version {
    case .one:
      names = (
        "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file", "total_active_file"
      )
    case .two:
      names = ("/memory.max", "/memory.current", "inactive_file", "active_file")
    }
    // "No limit" is a word in version 2, and in version 1 a number larger than any machine's memory.
    guard let limit = number(in: directory, names.limit), limit > 0, limit < machineTotal,
      let used = number(in: directory, names.used)
    else { return nil }
    var inactive = 0.0
    var active = 0.0
    forEachCount(directory, "/memory.stat") { name, count in
      if name.elementsEqual(names.inactive.utf8) { inactive = count }
      if name.elementsEqual(names.active.utf8) { active = count }
    }
    // File cache can be reclaimed: count all of the inactive part and half of the active part.
    return min(1, max(0, limit - used + inactive + active / 2) / limit)
  }

  private static func readEvents(_ directory: [UInt8], into reading: inout PressureLevel.Reading?) {
    forEachCount(directory, "/memory.events") { name, count in
      // Kernel counters stay far below the limits of Double and UInt64.
      let count = UInt64(count)
      if name.elementsEqual("high".utf8) || name.elementsEqual("max".utf8) { reading?.reclaims += count }
      if name.elementsEqual("oom".utf8) { reading?.shortages += count }
    }
  }

  /// Calls `body` for each line that is a name and a number.
  private static func forEachCount(
    _ directory: [UInt8], _ file: String, _ body: (_ name: ArraySlice<UInt8>, Double) -> Void
  ) {
    CgroupTree.forEachLine(of: directory + file.utf8) { line in
      let words = line.split(separator: UInt8(ascii: " "))
      if words.count == 2, let count = number(words[1]) { body(words[0], count) }
      return true
    }
  }

  private static func number(in directory: [UInt8], _ file: String) -> Double? {
    CgroupTree.contents(of: directory + file.utf8).flatMap { number($0[...]) }
  }

  /// The number that the whole text represents; nil if the text is not a number, or a negative one.
  private static func number(_ text: ArraySlice<UInt8>) -> Double? {
    guard let value = Int64(String(decoding: text, as: UTF8.self)), value >= 0 else { return nil }
    return Double(value)
  }
}

/// A descriptor through which the kernel reports memory stalls (PSI).
struct PressureTrigger {
  let descriptor: Int32
  let level: PressureLevel.Level

  /// What counts as a stall, in µs: within 2 s, some tasks stalled for 300 ms in total, or all tasks at once for 200
  /// ms. Unprivileged processes must use windows of a multiple of 2 s.
  private static let conditions: [(PressureLevel.Level, String)] = [
    (.warning, "some 300000 2000000"), (.critical, "full 200000 2000000"),
  ]

  /// Sets the triggers of a PSI file; nil if the system refuses one of them.
  static func open(_ path: String) -> [PressureTrigger]? {
    var triggers: [PressureTrigger] = []
    for (level, condition) in conditions {
      guard let descriptor = open(path, condition) else {
        for trigger in triggers { trigger.close() }
        return nil
      }
      triggers.append(PressureTrigger(descriptor: descriptor, level: level))
    }
    return triggers
  }

  private static func open(_ path: String, _ condition: String) -> Int32? {
    let flags = O_RDWR | O_NONBLOCK | O_CLOEXEC
    let descriptor = Int32(System.openAboveStandard(path, flags))
    guard descriptor >= 0 else { return nil }
    // SAFETY: the text is alive in the closure, and ends with the zero byte that the kernel expects.
    let written = condition.withCString { text in
      System.write(descriptor, text, condition.utf8.count + 1)
    }
    guard written >= 0 else {
      _ = System.close(descriptor)
      return nil
    }
    return descriptor
  }

  /// Whether the trigger can never fire because the control group was removed.
  var isBroken: Bool {
    // `poll` reports errors unrequested. Its other bits mean nothing here: triggers always count as readable.
    let state = System.readiness(of: descriptor, 0)
    return state < 0 || state & Int(POLLERR | POLLNVAL) != 0
  }

  func close() { _ = System.close(descriptor) }
}
