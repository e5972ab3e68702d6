/// Timers of one clock, the earliest first: a heap with four children a node, which keeps a pop within
/// few cache lines. Insert and pop are O(log n). Equal deadlines keep the order of insertion.
struct TimerHeap {
  struct Entry {
    /// When, in nanoseconds of the heap's clock.
    let deadline: UInt64
    /// Insertion number, to order equal deadlines.
    let sequence: UInt64
    /// What to submit, and where to; counted.
    let node: NodePointer
    let queue: Unmanaged<DispatchQueue>

    static func isBefore(_ a: Entry, _ b: Entry) -> Bool {
      a.deadline != b.deadline ? a.deadline < b.deadline : a.sequence < b.sequence
    }
  }

  private var entries: [Entry] = []
  private var inserted: UInt64 = 0

  /// The earliest deadline, or nil.
  var first: UInt64? { entries.first?.deadline }

  var count: Int { entries.count }

  mutating func insert(_ deadline: UInt64, _ node: NodePointer, _ queue: Unmanaged<DispatchQueue>) {
    inserted += 1
    let entry = Entry(deadline: deadline, sequence: inserted, node: node, queue: queue)
    entries.append(entry)
    var hole = entries.count - 1
    while hole > 0 {
      let parent = (hole - 1) / 4
      guard Entry.isBefore(entry, entries[parent]) else { break }
      entries[hole] = entries[parent]
      hole = parent
    }
    entries[hole] = entry
  }

  /// Takes the earliest entry if its deadline is not after `now`.
  mutating func popDue(_ now: UInt64) -> Entry? {
    guard let first = entries.first, first.deadline <= now else { return nil }
    let last = entries.removeLast()
    guard !entries.isEmpty else { return first }
    var hole = 0
    while true {
      let firstChild = 4 * hole + 1
      guard firstChild < entries.count else { break }
      var least = firstChild
      for child in firstChild..<min(firstChild + 4, entries.count)
      where Entry.isBefore(entries[child], entries[least]) {
        least = child
      }
      guard Entry.isBefore(entries[least], last) else { break }
      entries[hole] = entries[least]
      hole = least
    }
    entries[hole] = last
    return first
  }
}
