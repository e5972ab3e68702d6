/// The progress of one operation, and what its handler gets. The length, the water marks, the interval and the end
/// decide that.
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

  /// When the handler is called.
  enum Manner {
    /// As data arrives, by the water marks.
    case pieces
    /// Once: at the end, or when data has arrived and no more is ready.
    case once
  }

  /// Why an operation ends before its length is reached.
  enum End: Equatable {
    case endOfFile
    case failure(Int32)
  }

  /// Shorter pieces are copied behind the data before them: a region of its own takes some hundred bytes more than what
  /// it shows.
  private static let worthRegion = 4 << 10

  let direction: Direction
  let manner: Manner
  let marks: WaterMarks
  /// Reading: what has been read and not delivered. Writing: what is not written yet.
  private(set) var data: DispatchData
  /// How many bytes have been read or written.
  private(set) var transferred = 0
  /// Reading: how many bytes are still wanted. Writing: how many were written since the handler was last called.
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

  /// A read of up to `length` bytes; a negative number means all bytes, as C's `SIZE_MAX` does.
  static func read(_ length: Int, _ manner: Manner = .pieces, _ marks: WaterMarks = WaterMarks()) -> Self {
    Self(.read, manner, marks, .empty, length < 0 ? .max : length)
  }

  static func write(_ data: DispatchData, _ manner: Manner = .pieces, _ marks: WaterMarks = WaterMarks())
    -> Self
  {
    Self(.write, manner, marks, data, 0)
  }

  /// How many bytes to transfer next; 0 when nothing is left to do and `complete` must be called.
  var request: Int {
    switch (direction, manner) {
    case (.read, .pieces): min(count, marks.high - data.count)
    case (.read, .once): count
    case (.write, .pieces): min(data.count, marks.high - count)
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
    append(piece)
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

  /// The descriptor has nothing now. A one-shot read finishes as soon as it has data.
  mutating func ranDry() -> Delivery? {
    guard direction == .read, manner == .once, data.count > 0 else { return nil }
    return complete()
  }

  /// The remaining calls of an operation that ends early; the last of them is the operation's last.
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
  /// - Parameter strict: whether the handler is called even with less than the low-water mark.
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

  private mutating func append(_ piece: DispatchData) {
    guard data.count > 0 && piece.count < Self.worthRegion else { return data.append(piece) }
    piece.object.visitBytes { bytes in
      data.append(bytes)
      return true
    }
  }

  private mutating func takeData() -> DispatchData {
    defer { data = .empty }
    return data
  }
}
