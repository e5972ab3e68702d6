internal import Glibc

/// How far one operation has come, and what its handler is to be told of it: all that water marks, the
/// length, the interval and the end decide. It knows neither descriptors nor threads.
struct OperationProgress {
  /// One call of the handler.
  struct Delivery {
    let isLast: Bool
    let data: DispatchData?
    let error: Int32
  }

  enum Direction {
    case read, write
  }

  /// How the handler is told.
  enum Manner {
    /// As data comes, by the water marks.
    case pieces
    /// One time, when all that was to be had without waiting again has come, or the end.
    case once
  }

  /// Why an operation ends before its length is reached.
  enum End: Equatable {
    case endOfFile
    case failure(Int32)
  }

  let direction: Direction
  let manner: Manner
  let marks: WaterMarks
  /// Reading: what has been read and not delivered. Writing: what is not written yet.
  private(set) var data: DispatchData
  /// How many bytes have been read or written.
  private(set) var transferred = 0
  /// Reading: how many bytes are still wanted. Writing: how many were written since the handler heard of it.
  private var count: Int

  private init(
    _ direction: Direction, _ manner: Manner, _ marks: WaterMarks, _ data: DispatchData, _ count: Int
  ) {
    self.direction = direction
    self.manner = manner
    self.marks = marks
    self.data = data
    self.count = count
  }

  /// To read up to `length` bytes; a negative number stands for all there are, as C's `SIZE_MAX` does.
  static func read(_ length: Int, _ manner: Manner = .pieces, _ marks: WaterMarks = WaterMarks()) -> Self {
    Self(.read, manner, marks, .empty, length < 0 ? .max : length)
  }

  static func write(_ data: DispatchData, _ manner: Manner = .pieces, _ marks: WaterMarks = WaterMarks())
    -> Self
  {
    Self(.write, manner, marks, data, 0)
  }

  /// How many bytes to transfer next; 0 when there is nothing left to do, and then `complete` is due.
  var request: Int {
    switch (direction, manner) {
    case (.read, .pieces): min(count, marks.high - data.count)
    case (.read, .once): count
    case (.write, .pieces): min(data.count, marks.high)
    case (.write, .once): data.count
    }
  }

  /// The last call of an operation that has nothing left to do.
  mutating func complete() -> Delivery {
    switch direction {
    case .read: Delivery(isLast: true, data: takeData(), error: 0)
    case .write: Delivery(isLast: true, data: nil, error: 0)
    }
  }

  /// Bytes have been read: no more than `request`, and at least one.
  mutating func read(_ piece: DispatchData) -> Delivery? {
    transferred += piece.count
    count -= piece.count
    data.append(piece)
    if count == 0 { return complete() }
    guard manner == .pieces, data.count >= marks.low else { return nil }
    return Delivery(isLast: false, data: takeData(), error: 0)
  }

  /// Bytes have been written: no more than `request`, and at least one.
  mutating func wrote(_ written: Int) -> Delivery? {
    transferred += written
    count += written
    data = data.subdata(in: written..<data.count)
    if data.count == 0 { return complete() }
    guard manner == .pieces, count >= marks.low else { return nil }
    count = 0
    return Delivery(isLast: false, data: data, error: 0)
  }

  /// Going on would mean to wait. One who is told once has waited enough when he has something.
  mutating func ranDry() -> Delivery? {
    guard direction == .read, manner == .once, data.count > 0 else { return nil }
    return complete()
  }

  /// What is left to be told when the operation ends early; the last call is the last of them.
  mutating func end(_ end: End) -> [Delivery] {
    let error: Int32 =
      switch end {
      case .endOfFile: 0
      case .failure(let error): error
      }
    switch (direction, manner) {
    case (.write, _):
      return [Delivery(isLast: true, data: data, error: error)]
    case (.read, .once):
      return [Delivery(isLast: true, data: takeData(), error: error)]
    case (.read, .pieces):
      let last = Delivery(isLast: true, data: error == 0 ? .empty : nil, error: error)
      return data.count == 0 ? [last] : [Delivery(isLast: false, data: takeData(), error: 0), last]
    }
  }

  /// The interval has passed.
  /// - Parameter strict: whether the handler is to be called even if too little has come for it.
  mutating func intervalPassed(strict: Bool) -> Delivery? {
    guard manner == .pieces else { return nil }
    switch direction {
    case .read:
      guard strict || data.count >= marks.low else { return nil }
      return Delivery(isLast: false, data: takeData(), error: 0)
    case .write:
      guard strict || count >= marks.low else { return nil }
      count = 0
      return Delivery(isLast: false, data: data, error: 0)
    }
  }

  private mutating func takeData() -> DispatchData {
    defer { data = .empty }
    return data
  }
}

/// The least and the most that one intermediate call of a handler is told of, in bytes.
struct WaterMarks: Equatable {
  private(set) var low = 1 << 20
  private(set) var high = Int.max

  /// Setting one mark moves the other if they would cross. Negative numbers stand for no limit.
  mutating func setLow(_ value: Int) {
    low = value < 0 ? .max : max(1, value)
    high = max(high, low)
  }

  mutating func setHigh(_ value: Int) {
    high = value < 0 ? .max : max(1, value)
    low = min(low, high)
  }
}
