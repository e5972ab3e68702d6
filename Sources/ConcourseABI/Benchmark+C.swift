// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents

// private.h: how long a call takes.

/// The mean time of a run in nanoseconds; 0 for no runs.
private func meanTime(of count: Int, _ run: () -> Void) -> UInt64 {
  guard count > 0 else { return 0 }
  let start = DispatchTime.now().uptimeNanoseconds
  for _ in 0..<count { run() }
  return (DispatchTime.now().uptimeNanoseconds - start) / UInt64(count)
}

@c(dispatch_benchmark)
package func dispatch_benchmark(_ count: UInt, _ block: UnsafeMutableRawPointer?) -> UInt64 {
  let block = Block(block, "dispatch_benchmark")
  let invoke = block.invoke
  return meanTime(of: Int(clamping: count)) { invoke(block.reference) }
}

@c(dispatch_benchmark_f)
package func dispatch_benchmark_f(
  _ count: UInt, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) -> UInt64 {
  guard let work else { Reject.null("dispatch_benchmark_f", "function") }
  return meanTime(of: Int(clamping: count)) { work(context) }
}
