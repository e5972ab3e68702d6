@usableFromInline
package typealias NodePointer = UnsafeMutablePointer<WorkNode>

/// One entry of a queue: 48 bytes, from a per-thread magazine (NodeMagazine.swift).
///
/// Lists, the pool and its workers know how an entry is run (`kind`), and nothing of what it is: that is the client's
/// matter (Queue/Work.swift).
///
/// OWNED BY its submitter until pushed, then by the list, then by the thread that popped it. `work` is uninitialised
/// memory while the node is in a magazine, and after the client has moved it out.
@usableFromInline
package struct WorkNode: ~Copyable {
  /// The next node of the list this node is in.
  let next: Atomic<NodePointer?>
  var work: Payload
  var traits: WorkTraits
  /// The level at which the item is served.
  var level: QoSLevel
  /// How a worker runs the entry.
  var kind: EntryKind
  /// Two objects for the client.
  var group: UnsafeMutableRawPointer?
  var admittedBy: UnsafeMutableRawPointer?

  /// Room for the client's value.
  struct Payload {
    var words: (UInt, UInt)
    var tag: UInt8
  }
}

/// How a worker runs an entry: the index of its runner among the hooks (`concourse_entry_runners`).
@usableFromInline
package enum EntryKind: UInt8 {
  case item
  /// A queue that has become runnable. A worker may keep it, and then runs it without its root.
  case queue
  /// The oldest boosted entry of the root of this entry's level (Pool/Boost.swift).
  case boosted
  /// For tests of the pool without queues.
  case test
}

/// Properties of an entry that decide how it is admitted.
@usableFromInline
package struct WorkTraits: OptionSet, Sendable {
  @usableFromInline package let rawValue: UInt8

  @inlinable
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Runs alone on a concurrent queue.
  @inlinable
  package static var barrier: WorkTraits { WorkTraits(rawValue: 1) }
  /// The entry is a waiting thread.
  static let waiter = WorkTraits(rawValue: 2)
  /// Stands for the longest overdue item of a resumed queue (Queue/Hierarchy/DispatchQueue+Suspension.swift).
  static let ticket = WorkTraits(rawValue: 8)
  /// The entry is a new target.
  static let retarget = WorkTraits(rawValue: 16)
  /// Was submitted to an overcommitting global queue (Queue/Hierarchy/Overcommit.swift).
  static let promised = WorkTraits(rawValue: 32)
  /// Has a reference of its own to the queue that has admitted it (QueueState.ItemPlace).
  static let counted = WorkTraits(rawValue: 64)
}

extension UnsafeMutablePointer where Pointee == WorkNode {
  /// The address of the client's value, initialised or not.
  var payload: UnsafeMutableRawPointer {
    // SAFETY: `work` is the second field, right after `next`. Reaching it through `pointee`
    // would claim access to the whole node, which a late producer may be about to link.
    @inline(__always) get {
      UnsafeMutableRawPointer(self).advanced(by: MemoryLayout<Atomic<NodePointer?>>.stride)
    }
  }

  /// What decides how the entry is admitted. Reading it through here lets the model check that it does not race.
  var traits: WorkTraits {
    @inline(__always) get {
      PlainMemory.reads(beside: pointee.next)
      return pointee.traits
    }
  }
}
