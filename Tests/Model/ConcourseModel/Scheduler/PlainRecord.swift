/// The accesses of something plain so far, to find races.
struct PlainRecord {
  private var writes = VectorClock()
  private var reads = VectorClock()

  /// Records an access by `me`.
  /// - Returns: the coroutine of an earlier access that is not ordered before this one, although one of the two writes.
  mutating func add(isWrite: Bool, by me: Coroutine) -> Int? {
    var earlier = writes
    if isWrite { earlier.join(reads) }
    if isWrite { writes[me.id] = me.clock[me.id] } else { reads[me.id] = me.clock[me.id] }
    return earlier.firstBeyond(me.clock)
  }
}

extension Scheduler {
  /// Records an access of something plain, and ends the execution if it is a race.
  func access(
    _ record: inout PlainRecord, isWrite: Bool, _ name: @autoclosure () -> String, _ file: StaticString,
    _ line: UInt
  ) {
    guard let other = record.add(isWrite: isWrite, by: running!) else { return }
    fail(.race, "\(name()) is \(isWrite ? "written" : "read") at \(file):\(line), unordered with \(other)")
  }
}
