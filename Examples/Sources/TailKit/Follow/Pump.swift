/// Decides which file is read next, and whether any is: as long as enough waits for the output, none. The
/// files wait for their turn instead, and what their sources tell meanwhile changes nothing.
struct Pump {
  /// How much is read of a file before others have their turn.
  static let chunk = 1 << 16
  /// How many are read at once.
  private static let width = 4

  private let limit: Int
  private var turns: [OpenFile] = []
  private var underWay = 0
  /// How many files have not been shown to the end that they had at the start. These are read alone and one
  /// after the other, so that the last lines of each come in one piece and in the order of the names.
  var catchingUp = 0

  /// - Parameter limit: how many bytes may wait for the output.
  init(limit: Int) { self.limit = limit }

  /// Whether no file waits for anything.
  var isIdle: Bool { turns.isEmpty && underWay == 0 }
  var hasReadsUnderWay: Bool { underWay > 0 }

  /// Gives the file a turn, unless it has one or will have one.
  mutating func enqueue(_ file: OpenFile) {
    guard !file.isQueued, !file.isBusy, !file.isHeld, !file.isClosed else { return }
    file.isQueued = true
    if file.isCatchingUp && file.hasBegun { turns.insert(file, at: 0) } else { turns.append(file) }
  }

  /// The file whose turn it is, if there is room for what it will bring.
  mutating func next(pendingOutput: Int) -> OpenFile? {
    let width = catchingUp > 0 ? 1 : Self.width
    // At least one may always be read when nothing waits, however small the limit.
    guard !turns.isEmpty, underWay < width else { return nil }
    guard pendingOutput + underWay * Self.chunk < limit else { return nil }
    let file = turns.removeFirst()
    file.isQueued = false
    return file
  }

  mutating func begin(_ file: OpenFile) {
    file.isBusy = true
    file.hasBegun = true
    underWay += 1
  }

  mutating func end(_ file: OpenFile) {
    file.isBusy = false
    underWay -= 1
  }
}
