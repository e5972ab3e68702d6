// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseRuntime
internal import Glibc

// What the functions with variable arguments, which are C (log.c), ask of Swift.

/// A line about an object, to be freed; NULL when there is no memory.
@c(concourse_describe)
package func concourse_describe(_ object: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<CChar>? {
  guard object != nil else { return strdup("NULL") }
  if QueueAttribute.contains(object) { return strdup("<attribute of queues>") }
  let known = Object.any(object, "dispatch_debug").takeUnretainedValue()
  return strdup(known.description)
}
