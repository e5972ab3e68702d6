internal import CConcourse
internal import Glibc

/// Reads how much memory is left: on the machine, and in the control groups around this process.
struct MemoryGauge {
  /// Put before every path, for tests.
  let root: String

  /// nil if nothing can be read.
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
      // Our group's counts include those of the groups inside it, and are not ours above it.
      if isOwn && tree.version == .two { Self.readEvents(directory, into: &reading) }
      isOwn = false
    }
    return reading
  }

  /// The control group's file of stalls, if there is one.
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

  /// The machine's file of stalls.
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

  /// The part of its limit that a group can still use, nil without a limit.
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
    // No limit is a word in version 2, and a number beyond all machines in version 1.
    guard let limit = number(in: directory, names.limit), limit > 0, limit < machineTotal,
      let used = number(in: directory, names.used)
    else { return nil }
    var inactive = 0.0
    var active = 0.0
    forEachCount(directory, "/memory.stat") { name, count in
      if name.elementsEqual(names.inactive.utf8) { inactive = count }
      if name.elementsEqual(names.active.utf8) { active = count }
    }
    // Cached files can be given back: what is not in use all of it, of the rest about a half.
    return min(1, max(0, limit - used + inactive + active / 2) / limit)
  }

  private static func readEvents(_ directory: [UInt8], into reading: inout PressureLevel.Reading?) {
    forEachCount(directory, "/memory.events") { name, count in
      // Counters of the kernel's: far below what a Double or a UInt64 can hold.
      let count = UInt64(count)
      if name.elementsEqual("high".utf8) || name.elementsEqual("max".utf8) { reading?.reclaims += count }
      if name.elementsEqual("oom".utf8) { reading?.shortages += count }
    }
  }

  /// Lines of a name and a number.
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

  /// The number that the whole text is, nil if it is none or below zero.
  private static func number(_ text: ArraySlice<UInt8>) -> Double? {
    guard let value = Int64(String(decoding: text, as: UTF8.self)), value >= 0 else { return nil }
    return Double(value)
  }
}

/// A descriptor through which the kernel tells that tasks have stalled for want of memory (PSI).
struct PressureTrigger {
  let descriptor: Int32
  let level: PressureLevel.Level

  /// What counts as a stall: in two seconds, some tasks for 300 ms in all, or all of them at once for
  /// 200 ms. Without privilege the kernel accepts only windows of whole two seconds.
  private static let conditions: [(PressureLevel.Level, String)] = [
    (.warning, "some 300000 2000000"), (.critical, "full 200000 2000000"),
  ]

  /// The triggers of a file of stalls; nil if the system refuses one of them.
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
    let descriptor = Int32(
      System.call(.open) { System.result(concourse_above_standard(Glibc.open(path, flags))) })
    guard descriptor >= 0 else { return nil }
    // SAFETY: the text is alive in the closure, with the zero after it that the condition ends with.
    let written = condition.withCString { text in
      System.call(.write) { System.result(Glibc.write(descriptor, text, condition.utf8.count + 1)) }
    }
    guard written >= 0 else {
      _ = System.call(.close) { System.result(Glibc.close(descriptor)) }
      return nil
    }
    return descriptor
  }

  /// Whether the kernel will never tell anything here, because the control group has gone.
  var isBroken: Bool {
    // Errors are told without being asked for. What else is told means nothing: triggers always say that
    // they can be read.
    let state = System.call(.poll) { Int(concourse_poll_now(descriptor, 0)) }
    return state < 0 || state & Int(POLLERR | POLLNVAL) != 0
  }

  func close() { _ = System.call(.close) { System.result(Glibc.close(descriptor)) } }
}
