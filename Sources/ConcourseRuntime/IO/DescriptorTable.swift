internal import Glibc

/// The descriptors that clients have handed to channels: a second channel on one finds what the first made.
///
/// Lock order: an entry's lock may be held when the table's is taken (`forget`), never the other way round.
enum DescriptorTable {
  private static let lock = Lock()
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) static var entries: [Int32: DescriptorEntry] = [:]

  /// Brings a channel to the entry of its descriptor.
  /// - Returns: the entry, or one without a file if the descriptor is none; the channel has failed then.
  static func attach(_ channel: Channel, to descriptor: Int32) -> DescriptorEntry {
    while true {
      if let known = lock.withLock({ entries[descriptor] }) {
        // One that is just being given back leaves the table before its lock is free again.
        if known.attach(channel) { return known }
        continue
      }
      let (entry, isNew) = lock.withLock { () -> (DescriptorEntry, Bool) in
        if let other = entries[descriptor] { return (other, false) }
        // Under the lock, so that two do not both find the descriptor's flags as the other has set them.
        let (file, error) = OpenFile.adopt(descriptor, isOwn: false)
        guard let file else { return (DescriptorEntry(.failed(error)), true) }
        let entry = DescriptorEntry(.open(file))
        entries[descriptor] = entry
        return (entry, true)
      }
      if isNew && entry.attach(channel) { return entry }
    }
  }

  /// An entry gives its descriptor back.
  static func forget(_ descriptor: Int32, _ entry: DescriptorEntry) {
    lock.withLock {
      if entries[descriptor] === entry { entries[descriptor] = nil }
    }
  }
}
