/// What a node asks its runner to do.
///
/// A closure lies inline as its two words: submitting one copies no block and allocates nothing
/// beyond the node.
enum Work: ~Copyable {
  /// A client's closure.
  case closure(() -> Void)
  /// A client's C function and the context it is called with.
  case function(ContextFunction, UnsafeMutableRawPointer?)
  /// A client's work item, whose execution is counted and can be cancelled.
  case item(DispatchWorkItem)
  /// A queue that has become runnable: take its items and run them.
  case drain(DispatchQueue)
  /// A thread that waits for its turn. Valid until the waiter's event is signalled.
  case waiter(UnsafeMutablePointer<SyncWaiter>)
  /// The queue's owner is to change its target to this one.
  case retarget(DispatchQueue)
  /// Another node, already admitted by the concurrent queue that the wrapped node names as its owner.
  case redirected(NodePointer)
}

@usableFromInline
typealias NodePointer = UnsafeMutablePointer<WorkNode>

/// One entry of a queue: 48 bytes, from a per-thread magazine (NodeMagazine.swift).
///
/// OWNED BY its submitter until pushed, then by the list, then by whoever popped it. `work` is
/// uninitialised memory while the node lies in a magazine and after `takeWork`.
@usableFromInline
struct WorkNode: ~Copyable {
  /// The next node of the list this node is in.
  let next: Atomic<NodePointer?>
  var work: Work
  var traits: WorkTraits
  /// The level at which the item is to be served.
  var level: QoSLevel
  /// The group to leave when the item has run; its reference is counted by the group itself.
  var group: Unmanaged<DispatchGroup>?
  /// The concurrent queue that admitted this node past its list; holds a reference and one of its
  /// reader places until the item has run. In a notification that is not due yet: its queue, retained.
  var admittedBy: Unmanaged<DispatchQueue>?
}

/// Properties of an entry that decide how it is admitted.
struct WorkTraits: OptionSet {
  let rawValue: UInt8
  /// Runs alone on a concurrent queue.
  static let barrier = WorkTraits(rawValue: 1)
  /// The work is `.waiter`, said here so that one can tell without touching the work.
  static let waiter = WorkTraits(rawValue: 2)
  /// The work is `.drain`, likewise.
  static let queue = WorkTraits(rawValue: 4)
  /// Stands for the item of a resumed queue that is overdue longest (Queue/DispatchQueue+Suspension.swift).
  static let ticket = WorkTraits(rawValue: 8)
  /// The work is `.retarget`.
  static let retarget = WorkTraits(rawValue: 16)
}

extension UnsafeMutablePointer where Pointee == WorkNode {
  /// Moves the work out, leaving that field uninitialised.
  @inline(__always)
  func takeWork() -> Work { workPointer.move() }

  /// Where the work lies, initialised or not.
  var workPointer: UnsafeMutablePointer<Work> {
    // SAFETY: `work` is the second field, after the pointer-sized `next`. Reaching it through `pointee`
    // would claim access to the whole node, which a late producer may be about to link.
    @inline(__always) get {
      UnsafeMutableRawPointer(self).advanced(by: MemoryLayout<NodePointer?>.stride)
        .assumingMemoryBound(to: Work.self)
    }
  }

  var isWaiter: Bool {
    @inline(__always) get { pointee.traits.contains(.waiter) }
  }

  /// Not an item to run, but something that the queue's owner must see to.
  var isForOwner: Bool {
    @inline(__always) get { !pointee.traits.isDisjoint(with: [.waiter, .retarget]) }
  }

  var isQueue: Bool {
    @inline(__always) get { pointee.traits.contains(.queue) }
  }
}

/// A thread that waits in a queue's list for its turn. Lives on that thread's stack.
struct SyncWaiter: ~Copyable {
  let event = ThreadEvent()
  /// The waiting thread, so that ownership can be passed to it by name.
  let thread: UInt32
  /// Whether it needs the queue for itself.
  let exclusive: Bool
  /// The queue it was submitted to and the frame it was submitted from, for a body run elsewhere.
  let queue: Unmanaged<DispatchQueue>
  let frame: UnsafeMutablePointer<Frame>?
  let level: QoSLevel
  /// When set, whoever drains the queue may run the body itself instead of handing the queue over.
  let body: (() -> Void)?
  /// Whether the body was run by the drainer: there is nothing left to do but return.
  let bodyHasRun = Atomic<Bool>(false)

  /// Runs a waiting thread's body on this thread, as if from where that thread waits.
  ///
  /// Never inlined: the body's temporary reference must be gone before the waiter is signalled, since the
  /// closure lives on the waiter's stack.
  @inline(never)
  static func runBody(of waiter: UnsafeMutablePointer<SyncWaiter>) {
    let frame = Frame(
      queue: waiter.pointee.queue, parent: waiter.pointee.frame,
      exclusive: waiter.pointee.exclusive, level: waiter.pointee.level)
    Frame.run(frame) { waiter.pointee.body!() }
  }
}
