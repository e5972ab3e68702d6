import ConcourseEvents
import Glibc

/// Two queues on one target, or a workloop, with items that wait all the time: short ones, or one that computes for ever.
enum Hierarchy {
  static let target = DispatchQueue(label: "hierarchy")
  static let children = ["left", "right"].map { DispatchQueue(label: $0, target: target) }

  static func compute(_ microseconds: UInt64) {
    let end = DispatchTime.now().uptimeNanoseconds + microseconds * 1000
    while DispatchTime.now().uptimeNanoseconds < end {}
  }

  static func again(_ index: Int) {
    compute(100)
    children[index].async { again(index) }
  }

  @inline(never)
  static func neverEnds() { while true { compute(1000) } }

  static let workloop = DispatchWorkloop(label: "workloop")

  static func again(_ qos: DispatchQoS) {
    compute(100)
    workloop.async(qos: qos) { again(qos) }
  }

  /// Items of several classes. The lowest always wait.
  static func runWorkloop(isHeld: Bool) -> Never {
    if isHeld { workloop.async(qos: .userInteractive) { neverEnds() } }
    for qos in [DispatchQoS.background, .default, .userInitiated] {
      for _ in 0..<3 { workloop.async(qos: qos) { again(qos) } }
    }
    print("ready")
    fflush(nil)
    while true { pause() }
  }

  /// Items of a concurrent queue, admitted to a target that is held: their own nodes are in no list.
  static func runAdmitted() -> Never {
    let began = DispatchSemaphore(value: 0)
    target.async {
      began.signal()
      while true { pause() }
    }
    began.wait()
    let wide = DispatchQueue(label: "wide", attributes: .concurrent, target: target)
    for _ in 0..<5 { wide.async {} }
    print("ready")
    fflush(nil)
    while true { pause() }
  }

  static func run(isHeld: Bool) -> Never {
    if isHeld { children[0].async { neverEnds() } }
    for index in 0..<2 { for _ in 0..<(isHeld ? 5 : 2) { children[index].async { again(index) } } }
    if isHeld { for _ in 0..<3 { target.async {} } }
    print("ready")
    fflush(nil)
    while true { pause() }
  }
}
