import Concourse

extension Listing {
  static let groupWait = Listing("group", "several tasks, other work meanwhile, and one wait") { print in
    let lengths = wordLengths(["queues", "groups", "semaphores"]) { print("meanwhile, something else") }
    print("\(lengths.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" })")
  }
}

/// The length of each word, by a task for each.
/// - Parameter otherWork: done on this thread while the tasks run.
package func wordLengths(_ words: [String], otherWork: () -> Void) -> [String: Int] {
  let lengths = Guarded([String: Int]())
  let group = DispatchGroup()
  for word in words {
    DispatchQueue.global().async(group: group) { lengths.use { $0[word] = word.count } }
  }
  otherWork()
  group.wait()
  return lengths.use { $0 }
}
