/// The engine's marks of plain accesses, in the model: an access that is not ordered after earlier ones by other threads
/// fails the execution as a race.
///
/// No scheduling points: whether two accesses are ordered does not depend on which of them comes first.
@usableFromInline
enum PlainMemory {
  @usableFromInline
  static func reads<Value>(
    beside word: borrowing Atomic<Value>, file: StaticString = #fileID, line: UInt = #line
  ) { word.touchNeighbour(writing: false, file, line) }

  @usableFromInline
  static func writes<Value>(
    beside word: borrowing Atomic<Value>, file: StaticString = #fileID, line: UInt = #line
  ) { word.touchNeighbour(writing: true, file, line) }
}
