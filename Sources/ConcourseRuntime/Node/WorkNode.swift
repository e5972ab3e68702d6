/// The work of a node.
///
/// A closure is stored inline as its two words: submitting it copies no block and allocates only the node.
package enum Work: ~Copyable {
  /// A client's closure.
  case closure(() -> Void)
  /// The engine's own closure, which is not recorded.
  case engine(() -> Void)
  /// A client's C function and the context it is called with.
  case function(ContextFunction, UnsafeMutableRawPointer?)
  /// A client's work item, whose execution is counted and can be cancelled.
  case item(DispatchWorkItem)
  /// A runnable queue: take its items and run them.
  case drain(DispatchQueue)
  /// A thread that waits for its turn. Valid until the waiter's event is signalled.
  case waiter(UnsafeMutablePointer<SyncWaiter>)
  /// A new target, which the queue's owner sets.
  case retarget(DispatchQueue)
  /// Another node, already admitted by the concurrent queue in its `admittedBy`.
  case redirected(NodePointer)
  /// The oldest boosted entry of the root of this level (Pool/Boost.swift).
  case boosted(QoSLevel)
}

@usableFromInline
package typealias NodePointer = UnsafeMutablePointer<WorkNode>

/// One entry of a queue: 48 bytes, from a per-thread magazine (NodeMagazine.swift).
///
/// OWNED BY its submitter until pushed, then by the list, then by the thread that popped it. `work` is uninitialised
/// memory while the node is in a magazine and after `takeWork`.
@usableFromInline
package struct WorkNode: ~Copyable {
  /// The next node of the list this node is in.
  let next: Atomic<NodePointer?>
  var work: Work
  var traits: WorkTraits
  /// The level at which the item is served.
  var level: QoSLevel
  /// The group to leave when the item has run; the group itself counts the reference.
  var group: Unmanaged<DispatchGroup>?
  /// The concurrent queue that admitted this node past its list; holds a reference and one of its
  /// reader places until the item has run. In a notification that is not due yet: its queue, retained.
  var admittedBy: Unmanaged<DispatchQueue>?
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
  /// The work is `.waiter`. The bit can be read without an access to the work.
  static let waiter = WorkTraits(rawValue: 2)
  /// The work is `.drain` or `.boosted`, likewise.
  static let queue = WorkTraits(rawValue: 4)
  /// Stands for the longest overdue item of a resumed queue (Queue/DispatchQueue+Suspension.swift).
  static let ticket = WorkTraits(rawValue: 8)
  /// The work is `.retarget`.
  static let retarget = WorkTraits(rawValue: 16)
  /// Was submitted to an overcommitting global queue (Pool/Overcommit.swift).
  static let promised = WorkTraits(rawValue: 32)
}

extension UnsafeMutablePointer where Pointee == WorkNode {
  /// Moves the work out, leaving that field uninitialised.
  @inline(__always)
  package func takeWork() -> Work {
    PlainMemory.writes(beside: pointee.next)
    return workPointer.move()
  }

  /// The address of the work, initialised or not.
  var workPointer: UnsafeMutablePointer<Work> {
    // SAFETY: `work` is the second field, right after `next`. Reaching it through `pointee`
    // would claim access to the whole node, which a late producer may be about to link.
    @inline(__always) get {
      UnsafeMutableRawPointer(self).advanced(by: MemoryLayout<Atomic<NodePointer?>>.stride)
        .assumingMemoryBound(to: Work.self)
    }
  }

  /// What decides how the entry is admitted. Reading it through here lets the model check that it does not race.
  var traits: WorkTraits {
    @inline(__always) get {
      PlainMemory.reads(beside: pointee.next)
      return pointee.traits
    }
  }

  var isWaiter: Bool {
    @inline(__always) get { traits.contains(.waiter) }
  }

  /// Whether the entry is for the queue's owner, a waiter or a new target, and not an item to run.
  var isForOwner: Bool {
    @inline(__always) get { !traits.isDisjoint(with: [.waiter, .retarget]) }
  }

  var isQueue: Bool {
    @inline(__always) get { traits.contains(.queue) }
  }
}

/// A thread that waits in a queue's list for its turn. Lives on that thread's stack.
package struct SyncWaiter: ~Copyable {
  let event = ThreadEvent()
  /// The waiting thread's id, so that ownership can be passed to it.
  let thread: UInt32
  /// Whether it needs the queue exclusively.
  let exclusive: Bool
  /// The queue it was submitted to and the frame it was submitted from, for a body run elsewhere.
  let queue: Unmanaged<DispatchQueue>
  let frame: UnsafeMutablePointer<Frame>?
  let level: QoSLevel
  /// If set, the thread that drains the queue may run the body instead of handing over the queue.
  let body: (() -> Void)?
  /// Whether that thread has run the body. The waiter then only returns.
  let bodyHasRun = Atomic<Bool>(false)

  /// Runs a waiter's body on this thread, in a frame whose parent is the waiter's.
  ///
  /// Never inlined: the body's temporary reference must be gone before the waiter is signalled, since the
  /// closure lives on the waiter's stack.
  @inline(never)
  static func runBody(of waiter: UnsafeMutablePointer<SyncWaiter>) {
    PlainMemory.reads(beside: waiter.pointee.bodyHasRun)
    let frame = Frame(
      queue: waiter.pointee.queue, parent: waiter.pointee.frame,
      exclusive: waiter.pointee.exclusive, level: waiter.pointee.level)
    Frame.run(frame) { waiter.pointee.body!() }
  }
}
