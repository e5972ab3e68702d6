import Concourse
import Foundation
import Journal

import struct Concourse.DispatchData
import class Concourse.DispatchQueue
import class Concourse.DispatchSemaphore

/// Runs its own submissions on Concourse.
@main
enum LibraryAuthor {
  static func main() {
    let queue = DispatchQueue(label: "author")
    let done = DispatchSemaphore(value: 0)
    queue.async { done.signal() }
    done.wait()
    print("queue: \(queue.sync { 42 })")

    let journal = Journal(queue: queue)
    journal.write("first")
    journal.write("second")
    print("journal: \(journal.contents.count) bytes")
    print("the toolchain's: \(Journal.pieces(of: Dispatch::DispatchData.empty)) pieces")
  }
}
