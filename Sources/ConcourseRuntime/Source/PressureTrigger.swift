internal import CConcourse
internal import Glibc

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
