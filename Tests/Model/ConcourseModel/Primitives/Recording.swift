/// The engine's recording, in the model: always off.
package enum Recording {
  package enum Wait: UInt8 {
    case sync = 1
    case mainQueue, group, semaphore, workItem, once, parallelLoop, sourceCancellation
  }

  static var isOn: Bool { false }

  static func beginIfAsked() {}
  static func name(_ queue: UInt, _ text: String, kind: UInt8, target: UInt, isMade: Bool) -> Bool { false }
  static func submitted(_ queue: UInt, node: UInt, function: UInt) {}
  static func scheduled(_ queue: UInt, node: UInt, function: UInt) {}
  static func started(_ queue: UInt, node: UInt, function: UInt) {}
  static func ended(_ queue: UInt, node: UInt, function: UInt) {}
  static func wait<Result>(_ wait: Wait, _ object: UnsafeRawPointer?, _ sleep: () -> Result) -> Result {
    sleep()
  }
  static func beginWait(_ wait: Wait, _ object: UnsafeRawPointer?) {}
  static func endWait(_ wait: Wait, _ object: UnsafeRawPointer?) {}
  static func timerFired(_ object: UnsafeRawPointer) {}
  static func sourceRaised(_ object: UnsafeRawPointer, value: UInt, kind: UInt8, queue: UInt) {}
  static func threadMade(_ level: QoSLevel) {}
  static func threadParked() {}
  static func threadWoken() {}
  static func threadEnds() {}
}
