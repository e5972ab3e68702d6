/// Writes to a descriptor without waiting for whoever reads it. One write is under way at a time; what
/// comes meanwhile is joined to the next.
// SAFETY: the variables are OWNED BY `queue`, on which all methods are called.
final class OutputChannel: @unchecked Sendable {
  private let queue: DispatchQueue
  private let channel: DispatchIO
  private let drained: @Sendable () -> Void
  private let closed: @Sendable (Int32) -> Void
  private var waiting = DispatchData.empty
  private var underWay = 0
  private var failure: Int32 = 0
  private var isClosing = false

  /// - Parameters:
  ///   - drained: called on `queue` when less is pending than before.
  ///   - closed: called on `queue` once: with 0 when all was written after `close`, or with the errno as
  ///     soon as something could not be.
  init(
    descriptor: Int32, queue: DispatchQueue, drained: @escaping @Sendable () -> Void,
    closed: @escaping @Sendable (Int32) -> Void
  ) {
    self.queue = queue
    self.drained = drained
    self.closed = closed
    channel = DispatchIO(type: .stream, fileDescriptor: descriptor, queue: queue) { _ in }
  }

  /// How many bytes have not been written yet.
  var pending: Int { waiting.count + underWay }

  func write(_ data: DispatchData) {
    guard data.count > 0, failure == 0 else { return }
    waiting.append(data)
    next()
  }

  /// Ends when all is written.
  func close() {
    isClosing = true
    next()
  }

  private func next() {
    guard underWay == 0, failure == 0 else { return }
    guard waiting.count > 0 else {
      if isClosing { closed(0) }
      return
    }
    let data = waiting
    waiting = .empty
    underWay = data.count
    channel.write(offset: 0, data: data, queue: queue) { [self] done, rest, error in
      underWay = rest?.count ?? 0
      if error != 0 {
        // What is left is lost, and so is what would have followed.
        (failure, underWay, waiting) = (error, 0, .empty)
        return closed(error)
      }
      if done { next() }
      drained()
    }
  }
}
