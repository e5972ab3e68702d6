internal import FoundationEssentials

// Groups.
//
// The subject of an item ends with its group, and the streams are the truth: an item is in its stream until it has been
// acknowledged, on a majority of the servers. So the engine needs no count that a death between two writes could spoil.
// A group is finished when neither stream has a message with it: first the one of the items that wait for their time,
// since items move from there to the other one, where they are stored before they leave.
//
// A stream may keep an item that was acknowledged while a server was killed (README). The consumer knows better: all
// that is not above its floor was acknowledged.
//
// A server that has just become the leader of a stream may not have applied the last items. So when no item is found, a
// change goes through the stream's log, after which its leader has applied all that was stored before; then it is asked
// once more. That change is the removal of the item at the consumer's floor, which was acknowledged, and is mostly gone.

extension NATSQueue {
  /// The part of a subject that names the group. Items without one have "-".
  static func part(ofGroup group: String) -> String { "g-" + NATSNames.encoded(group) }

  /// Where workers say that an item of the group has ended. No stream keeps that.
  private func hintSubject(_ part: String) -> String { "\(names.hintSubject).\(part)" }

  func finished(_ group: String) async throws {
    try await asClusterErrors {
      let part = Self.part(ofGroup: group)
      let hint = Hint()
      let subscription = try connection.subscribe(hintSubject(part)) { _ in hint.give() }
      defer { withExtendedLifetime(subscription) {} }
      var pauses = Pauses(hint)
      while true {
        if try await hasNone(part, for: .first), try await hasNone(part, for: .last) { return }
        try await pauses.wait()
      }
    }
  }

  private enum Look {
    case first
    /// What the leader answers must hold all that was stored before.
    case last
  }

  private func hasNone(_ part: String, for look: Look) async throws -> Bool {
    for (stream, subject) in [(names.laterStream, names.laterSubject), (names.stream, names.subject)] {
      let floor = try await consumerInfo(of: stream).ack_floor.stream_seq
      if look == .last { try await passLog(of: stream, floor: floor) }
      if try await stored(in: stream, NATSGet(seq: floor + 1, next_by_subj: "\(subject).*.*.\(part)")) != nil
      {
        return false
      }
    }
    return true
  }

  func passLog(of stream: String, floor: UInt64) async throws {
    // No item of the stream has ended yet. The new leader gets some time instead.
    guard floor > 0 else { return try await Task.sleep(for: .milliseconds(500)) }
    do {
      let _: NATSNothing = try await ask(
        "STREAM.MSG.DELETE.\(stream)", NATSDelete(seq: floor, no_erase: true))
    } catch let refusal as NATSRefusal where !refusal.isPassing {
      // It was gone. The answer comes from the leader, when it has applied the request.
    }
  }

  /// The order of an item that may have to wait for others.
  func order(of message: NATSMessage) -> String? { message.order ?? (hasBarriers ? "-" : nil) }

  /// Tells those that wait for the group of an item, or for the item. If that is lost, they look after a while.
  func hasEnded(_ message: NATSMessage) { hasEnded(message, cancelled: nil) }

  /// - Parameter token: That of an item that was cancelled, and may wait in a line.
  func hasEnded(_ message: NATSMessage, cancelled token: String?) {
    if message.hasNoParts, !hasBarriers { return }
    if let order = order(of: message) {
      try? connection.publish("\(names.turnSubject).\(order)", Array((token ?? "").utf8))
    }
    guard let part = message.subject.split(separator: ".").last, part != "-" else { return }
    try? connection.publish(hintSubject(String(part)), [])
  }
}
