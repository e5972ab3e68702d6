import ConcourseRecording

extension RecordedRun {
  /// The highest bits of what stands in place of the code of an item that has its queue's label for a name. No code and
  /// no job of a task has them.
  private static let labelBits: UInt64 = 1 << 62

  /// Replaces the codes of which `isUnnamed` is true by numbers, one for each label of a queue.
  ///
  /// An item keeps its number from its submission to its end, also if it starts on another object of the same queue.
  /// - Returns: the labels by number.
  mutating func labelItems(_ isUnnamed: (UInt64) -> Bool) -> [UInt64: String] {
    let index = namesByQueue
    var numbers: [String: UInt64] = [:]
    var verdicts: [UInt64: Bool] = [:]
    /// What was submitted, or is to be after a delay, and has not started, by node.
    var submitted: [UInt64: (code: UInt64, number: UInt64)] = [:]
    var delayed: [UInt64: (code: UInt64, number: UInt64)] = [:]
    /// The items that have not ended, by thread.
    var open: [UInt32: [(queue: UInt64, code: UInt64, number: UInt64)]] = [:]

    func labelNumber(_ event: RecordedEvent) -> UInt64 {
      let label = label(of: event.object, at: event.time, index)
      if let known = numbers[label] { return known }
      let number = Self.labelBits | UInt64(numbers.count)
      numbers[label] = number
      return number
    }

    for place in events.indices {
      let event = events[place]
      switch event.kind {
      case .submitted, .scheduled, .started, .ended: break
      case .parked, .threadEnded:
        open[event.thread] = nil
        continue
      case .threadBegan, .waitBegan, .waitEnded, .made, .woken, .timer, .source, .taskName: continue
      }
      let isLabelled: Bool
      if let known = verdicts[event.function] {
        isLabelled = known
      } else {
        isLabelled = isUnnamed(event.function)
        verdicts[event.function] = isLabelled
      }
      guard isLabelled else { continue }
      var number: UInt64?
      switch event.kind {
      case .submitted:
        if let call = delayed.removeValue(forKey: event.node), call.code == event.function {
          number = call.number
        }
      case .started:
        if let item = submitted.removeValue(forKey: event.node), item.code == event.function {
          number = item.number
        }
      case .ended:
        let items = open[event.thread] ?? []
        if let item = items.lastIndex(where: { $0.queue == event.object && $0.code == event.function }) {
          number = items[item].number
          open[event.thread]!.removeSubrange(item...)
        }
      default: break
      }
      let found = number ?? labelNumber(event)
      switch event.kind {
      case .scheduled: delayed[event.node] = (event.function, found)
      case .submitted: submitted[event.node] = (event.function, found)
      case .started: open[event.thread, default: []].append((event.object, event.function, found))
      default: break
      }
      events[place].function = found
    }
    return Dictionary(uniqueKeysWithValues: numbers.map { ($1, $0) })
  }
}
