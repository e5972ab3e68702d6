import Concourse

/// The event streams of all open pages. An event is encoded once, on this object's serial queue: for the main queue, an
/// event to 200 pages costs one submission.
// SAFETY: the mutable state is OWNED BY `queue`, a serial queue.
final class EventStreams: @unchecked Sendable {
  private let queue = DispatchQueue(label: "googlypuff.events")
  /// The oldest first.
  private var streams: [EventStream] = []
  /// The latest notices. Their numbers end with `count`.
  private var notices: [Gallery.Notice] = []
  private var count = 0

  /// Adds a stream, which first gets the notices after `lastNotice`, then the photos.
  func add(_ stream: EventStream, lastNotice: Int?, photos: @escaping @Sendable () -> [Photo]) {
    queue.async { [self] in
      // Without a connection left, no page could load. The page whose stream ends reconnects.
      if streams.count == Limits.streams { streams.removeFirst().end() }
      streams.append(stream)
      // The number comes from outside: subtracting a negative one could overflow.
      let missed = min(max(0, count - max(0, lastNotice ?? count)), notices.count)
      for (index, notice) in notices.suffix(missed).enumerated() {
        stream.push(encode("notice", notice, number: count - missed + index + 1))
      }
      stream.push(encode("photos", photos(), number: count))
    }
  }

  func remove(_ stream: EventStream) { queue.async { self.streams.removeAll { $0.id == stream.id } } }

  func send(_ name: String, _ value: some Encodable & Sendable) {
    queue.async { self.broadcast(name, value) }
  }

  /// Sends a notice. Pages whose streams are down get it when they reconnect.
  func send(_ notice: Gallery.Notice) {
    queue.async { [self] in
      count += 1
      notices.append(notice)
      if notices.count > 100 { notices.removeFirst() }
      broadcast("notice", notice)
    }
  }

  private func broadcast(_ name: String, _ value: some Encodable) {
    let bytes = encode(name, value, number: count)
    for stream in streams { stream.push(bytes) }
  }

  /// The browser returns the `id` of the last event, here the number of the last notice, when it reconnects.
  private func encode(_ name: String, _ value: some Encodable, number: Int) -> [UInt8] {
    Array("id: \(number)\nevent: \(name)\ndata: ".utf8) + JSON.encode(value) + Array("\n\n".utf8)
  }
}
