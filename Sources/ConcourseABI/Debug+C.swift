// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents
internal import Glibc

// What the variadic functions in log.c need from Swift.

/// A one-line description of the object, which the caller frees; NULL when memory is exhausted.
@c(concourse_describe)
package func concourse_describe(_ object: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<CChar>? {
  guard object != nil else { return strdup("NULL") }
  if QueueAttribute.contains(object) { return strdup("<queue attribute>") }
  let known = Object.any(object, "dispatch_debug").takeUnretainedValue()
  return strdup(known.description)
}
