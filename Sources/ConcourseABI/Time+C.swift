// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents
package import Glibc

// time.h and once.h

@c(dispatch_time)
package func dispatch_time(_ when: UInt64, _ delta: Int64) -> UInt64 { EncodedTime.adding(delta, to: when) }

@c(dispatch_walltime)
package func dispatch_walltime(_ when: UnsafePointer<timespec>?, _ delta: Int64) -> UInt64 {
  EncodedTime.wall(when.map { (Int($0.pointee.tv_sec), Int($0.pointee.tv_nsec)) }, adding: delta)
}

@c(dispatch_once)
package func dispatch_once(_ predicate: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?) {
  guard let predicate else { Reject.null("dispatch_once", "predicate") }
  let block = Block(block, "dispatch_once")
  OnceGate.perform(at: predicate) { block.invoke(block.reference) }
}

@c(dispatch_once_f)
package func dispatch_once_f(
  _ predicate: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ function: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let predicate else { Reject.null("dispatch_once_f", "predicate") }
  guard let function else { Reject.null("dispatch_once_f", "function") }
  OnceGate.perform(at: predicate) { function(context) }
}
