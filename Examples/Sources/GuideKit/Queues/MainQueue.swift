import Concourse
import Glibc

extension Listing {
  static let mainQueue = Listing("main-queue", "items for the main thread") { print in
    print("here: \(isMainThread ? "the main thread" : "a worker")")
    let place = DispatchQueue.main.sync { isMainThread ? "the main thread" : "a worker" }
    print("in an item of the main queue: \(place)")
    let done = DispatchSemaphore(value: 0)
    DispatchQueue.main.async {
      print("in a later one: \(isMainThread ? "the main thread" : "a worker")")
      done.signal()
    }
    done.wait()
  }
}

/// Whether this is the thread that the process began with, which has the process's own number.
package var isMainThread: Bool {
  var path = [UInt8](repeating: 0, count: 64)
  let length = path.withUnsafeMutableBytes { bytes in
    // SAFETY: characters have no structure.
    readlink("/proc/thread-self", bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
  }
  // "PROCESS/task/THREAD"
  let numbers = path.prefix(max(0, length)).split(separator: UInt8(ascii: "/"))
  return numbers.count == 3 && numbers[0] == numbers[2]
}
