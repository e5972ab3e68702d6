/// When the sleeps of tasks end.
///
/// For each sleep the standard library makes a second task, which resumes the first one, and submits it for the end of the
/// sleep. The engine keeps that submission among its timers. The second task's closure has the address of a word that both
/// share: the sleeping task's address, perhaps with its state in the lowest bits. No layout says where the closure is, so
/// each word of the second task is followed: to that word, or to a closure that has its address.
struct TaskSleeps {
  private let process: TargetProcess
  /// The sleeping tasks.
  private let sleepers: Set<UInt64>
  /// In how many nanoseconds each of them resumes; below 0 if that time has passed.
  private(set) var left: [UInt64: Int64] = [:]
  private var wordsLeft = Limit.words
  /// Where in the second task, and in the closure there, the shared word's address was found last.
  private var path: [UInt64]?

  private enum Limit {
    static let timers = 1_000_000
    static let words = 2_000_000
    /// Of a task: its fields and the beginning of the memory that it allocates from.
    static let task = 512
    /// Of a closure: what it has captured.
    static let closure = 64
  }

  /// In the word that both tasks share.
  private static let stateBits: UInt64 = 7

  /// - Parameter makers: The tasks that run code of the standard library only.
  init(_ snapshot: EngineSnapshot, sleepers: Set<UInt64>, makers: Set<UInt64>) {
    (process, self.sleepers) = (snapshot.process, sleepers)
    guard !sleepers.isEmpty, !makers.isEmpty, let now = process.now else { return }
    var timersLeft = Limit.timers
    for list in snapshot.timerLists.compactMap({ $0.list(in: process.memory) }) {
      let now = Int64(clamping: list.isWall ? WallClock.now : now)
      for (time, node) in list.submissions(in: process.memory, atMost: &timersLeft) {
        // A node: the next one, then a function and its context.
        guard let work = process.memory.bytes(at: node &+ 8, count: 16) else { continue }
        let maker = [0, 8].lazy.map { work.number(at: $0, as: UInt64.self)! }.first(where: makers.contains)
        guard let maker, let sleeper = sleeper(of: maker) else { continue }
        left[sleeper] = Int64(clamping: time) - now
      }
    }
  }

  private mutating func sleeper(of maker: UInt64) -> UInt64? {
    // Mostly all are laid out alike.
    if let found = path.flatMap({ follow($0, from: maker) }) { return found }
    for (place, word) in pointers(at: maker, bytes: Limit.task) {
      if let found = shared(word) {
        path = [place]
        return found
      }
      for (inner, word) in pointers(at: word, bytes: Limit.closure) {
        guard let found = shared(word) else { continue }
        path = [place, inner]
        return found
      }
    }
    return nil
  }

  private func follow(_ path: [UInt64], from maker: UInt64) -> UInt64? {
    var address = maker
    for place in path {
      guard let word = process.memory.word(address &+ place) else { return nil }
      address = word
    }
    return shared(address)
  }

  /// The sleeping task that a word at the address names.
  private func shared(_ place: UInt64) -> UInt64? {
    guard let task = process.memory.word(place).map({ $0 & ~Self.stateBits }) else { return nil }
    return sleepers.contains(task) ? task : nil
  }

  /// Words that may be addresses of objects, and their offsets.
  private mutating func pointers(at place: UInt64, bytes count: Int) -> [(UInt64, UInt64)] {
    guard wordsLeft > 0, place % 8 == 0, let bytes = process.memory.bytes(at: place, count: count) else {
      return []
    }
    wordsLeft -= count / 8
    return stride(from: 0, to: count, by: 8).map { (UInt64($0), bytes.number(at: $0)!) }.filter {
      $0.1 > 4096 && $0.1 % 8 == 0 && $0.1 < 1 << 47
    }
  }
}

/// Where the engine keeps timers: the elements of an array.
struct TimerList {
  /// Where the engine has the array's address, and the index of the first element; nil if that is 0. A process that goes on
  /// replaces the array.
  struct Place {
    let isWall: Bool
    let array: UInt64
    let first: UInt64?

    func list(in memory: any TargetMemory) -> TimerList? {
      let first = first.map { memory.word($0) ?? 0 } ?? 0
      // Of an array's buffer: the count at 16, twice the capacity at 24.
      guard let array = memory.word(array), let count = memory.word(array &+ 16), count > first,
        count < 1 << 40, let capacity = memory.word(array &+ 24), count <= capacity / 2
      else { return nil }
      return TimerList(isWall: isWall, array: array, first: first, count: count)
    }
  }

  let isWall: Bool
  let array: UInt64
  let first: UInt64
  let count: UInt64

  /// `TimerHeap.Entry`: its time, a number, and the node of a submission, or another object.
  static let stride: UInt64 = 32
  static let placeOfPayload = 16

  /// Of an array's buffer: where its elements begin.
  static let header: UInt64 = 32

  /// Times, and the addresses of what may be the nodes of delayed submissions.
  func submissions(in memory: any TargetMemory, atMost left: inout Int) -> [(time: UInt64, node: UInt64)] {
    var found: [(UInt64, UInt64)] = []
    var next = first
    while next < count && left > 0 {
      let number = min(count - next, 1024)
      guard
        let bytes = memory.bytes(
          at: array &+ Self.header &+ next &* Self.stride, count: Int(number * Self.stride))
      else { break }
      for element in 0..<Int(number) {
        let place = element * Int(Self.stride)
        found.append((bytes.number(at: place)!, bytes.number(at: place + Self.placeOfPayload)!))
      }
      (next, left) = (next + number, left - Int(number))
    }
    return found
  }
}
