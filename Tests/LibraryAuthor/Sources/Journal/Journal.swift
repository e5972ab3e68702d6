import Concourse
import ConcourseFoundation
import Foundation

import struct Concourse.DispatchData
import class Concourse.DispatchQueue
import struct Concourse.DispatchTime

/// Lines with the time at which they were written, kept by a queue of the client's.
public final class Journal: @unchecked Sendable {  // SAFETY: `text` is GUARDED BY `queue`.
  /// Everything happens here.
  public let queue: DispatchQueue
  private var text = DispatchData.empty

  /// A journal without lines.
  public init(queue: DispatchQueue = DispatchQueue(label: "journal")) { self.queue = queue }

  /// Adds a line.
  public func write(_ line: String) {
    queue.async { Data("\(line)\n".utf8).withUnsafeBytes { self.text.append(DispatchData(bytes: $0)) } }
  }

  /// Adds a line, at the earliest at `time`.
  public func write(_ line: String, at time: DispatchTime) {
    queue.asyncAfter(deadline: max(time, .now() + .milliseconds(1))) { self.write(line) }
  }

  /// All lines.
  public var data: DispatchData { queue.sync { text } }

  /// All lines, for Foundation.
  public var contents: Data { Data(data) }

  /// The number of regions of any data, the toolchain's included, whose conformance Foundation has.
  public static func pieces(of data: some DataProtocol) -> Int { data.regions.count }
}
