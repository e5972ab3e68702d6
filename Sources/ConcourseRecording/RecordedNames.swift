/// A queue's name from a time on.
package struct RecordedName: Equatable {
  package var queue: UInt64
  package var time: UInt64
  package var target: UInt64
  package var kind: UInt8
  package var text: String
  /// Without a text: return addresses of the calls that made the queue, innermost first.
  package var frames: [UInt64] = []

  package var isGlobal: Bool { kind == 0 }
}

/// The names of queues that have been read of a recording.
struct RecordedNames {
  private var all: [RecordedName] = []
  /// The entries that have been looked at, and those among them that were not complete yet.
  private var seen = 0
  private var unfinished: [Int] = []
  private var taken = 0

  /// Those that have come since the last call of `take`.
  var new: ArraySlice<RecordedName> { all[taken...] }
  mutating func take() { taken = all.count }

  mutating func read(upTo count: Int, from bytes: any RecordingBytes, at offset: UInt64) {
    let size = RecordingLayout.nameSize
    var places = unfinished
    unfinished = []
    if count > seen { places += seen..<count }
    seen = max(seen, count)
    // The second copy has the whole of each entry that was complete in the first.
    guard let first = places.first,
      let looked = bytes.read(at: offset + UInt64(first * size), count: (count - first) * size),
      let entries = bytes.read(at: offset + UInt64(first * size), count: (count - first) * size)
    else { return }
    for place in places where place < count {
      let start = (place - first) * size
      guard looked[start + 25] == 1 else {
        unfinished.append(place)
        continue
      }
      let length = min(Int(entries.number(at: start + 26, as: UInt16.self)!), 95)
      let frames = min(Int(entries.number(at: start + 28, as: UInt32.self)!), length == 0 ? 12 : 0)
      all.append(
        RecordedName(
          queue: entries.number(at: start)!, time: entries.number(at: start + 8)!,
          target: entries.number(at: start + 16)!, kind: entries[start + 24],
          text: String(decoding: entries[start + 32..<start + 32 + length], as: UTF8.self),
          frames: (0..<frames).map { entries.number(at: start + 32 + 8 * $0)! }))
    }
  }

  /// The latest name of each queue that has one, in the order of their first.
  func latest(without unnamed: [UInt8]) -> [RecordedName] {
    var places: [UInt64: Int] = [:]
    var latest: [RecordedName] = []
    for name in all where name.isGlobal || !RecordedRun.isUnnamed(name.queue, unnamed) {
      if let place = places[name.queue] {
        latest[place] = name
      } else {
        places[name.queue] = latest.count
        latest.append(name)
      }
    }
    return latest
  }
}
