/// The work of a node: what a queue's entry is.
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
  case item(any RunnableItem)
  /// A runnable queue: take its items and run them.
  case drain(DispatchQueue)
  /// A thread that waits for its turn. Valid until the waiter's event is signalled, and only in the process where the
  /// thread waits: a fork leaves it in the parent, and the child may use its stack for other threads.
  case waiter(UnsafeMutablePointer<SyncWaiter>, thread: UInt32, forks: UInt32)
  /// A new target, which the queue's owner sets.
  case retarget(DispatchQueue)
  /// Another node, already admitted by the concurrent queue in its `admittedBy`.
  case redirected(NodePointer)
}

/// A work item, for the queue that runs it.
package protocol RunnableItem: AnyObject {
  /// Runs or skips the item.
  func execute()
  /// The code that the item runs.
  var codeAddress: UInt { get }
}

/// What a work item runs. It is not copyable, so that running it retains nothing.
enum ItemBody: ~Copyable {
  case closure(Closure)
  case block(Block)
  /// The body has been taken out.
  case none

  struct Closure: ~Copyable {
    let function: () -> Void
  }

  /// A block of a C program. The item owns the context, calls `invoke` with it, and frees it with `release`.
  struct Block: ~Copyable {
    let context: UnsafeMutableRawPointer
    let invoke: ContextFunction
    let release: ContextFunction

    deinit { release(context) }
  }

  @inline(__always)
  borrowing func run() {
    switch self {
    case .closure(let closure): closure.function()
    case .block(let block): block.invoke(block.context)
    case .none: break
    }
  }
}

extension UnsafeMutablePointer where Pointee == WorkNode {
  /// Takes the waiter out of its node, which is freed. nil for a thread that a fork has left in the parent.
  @inline(__always)
  package func takeWaiter() -> UnsafeMutablePointer<SyncWaiter>? {
    guard case .waiter(let waiter, let thread, let forks) = takeWork() else {
      Trap.runtimeBug("an item was taken for a waiting thread")
    }
    NodeMagazine.recycle(self)
    return Process.hasLeft(thread, after: forks) ? nil : waiter
  }

  /// Moves the work out, leaving that field uninitialised.
  @inline(__always)
  package func takeWork() -> Work {
    PlainMemory.writes(beside: pointee.next)
    return workPointer.move()
  }

  /// The address of the work, initialised or not.
  var workPointer: UnsafeMutablePointer<Work> {
    // SAFETY: only `make` of DispatchQueue+Enqueue.swift fills nodes of queues, and `WorkTests` compares the sizes.
    @inline(__always) get { payload.assumingMemoryBound(to: Work.self) }
  }

  /// The group to leave when the item has run; the group itself counts the reference.
  var group: Unmanaged<DispatchObject>? {
    // SAFETY: only `make` stores it, from the same type.
    @inline(__always) get { pointee.group.map { .fromOpaque($0) } }
  }

  /// The concurrent queue that admitted this node past its list. Until the item has run, the node has one of its reader
  /// places, which keeps the queue; if `counted`, also a reference. In a notification that is not due yet: its queue, retained.
  var admittedBy: Unmanaged<DispatchQueue>? {
    // SAFETY: only `make` and this setter store it, from the same type.
    @inline(__always) get { pointee.admittedBy.map { .fromOpaque($0) } }
    @inline(__always) nonmutating set { pointee.admittedBy = newValue?.toOpaque() }
  }

  var isWaiter: Bool {
    @inline(__always) get { traits.contains(.waiter) }
  }

  /// Whether the entry is for the queue's owner, a waiter or a new target, and not an item to run.
  var isForOwner: Bool {
    @inline(__always) get { !traits.isDisjoint(with: [.waiter, .retarget]) }
  }

  /// Whether the entry, or the item of a nested queue that it stands for, matches.
  func stands(for matches: (NodePointer) -> Bool) -> Bool {
    PlainMemory.reads(beside: pointee.next)
    if matches(self) { return true }
    // An entry of the pool's own has no work.
    guard pointee.kind == .item else { return false }
    switch workPointer.pointee {
    case .redirected(let item): return item.stands(for: matches)
    default: return false
    }
  }
}

// MARK: - Notifications

/// Notifications that are not due yet. Each node retains the queue that it will be submitted to, in `admittedBy`.
extension NodeChain {
  mutating func append(_ node: NodePointer, for queue: DispatchQueue) {
    node.admittedBy = .passRetained(queue)
    append(node)
  }

  /// Submits all notifications in order.
  mutating func submitAll() { while let node = takeFirst() { Self.submit(node) } }

  /// Submits the notifications of an item that is released without having run: no execution can follow. In a forked
  /// child, drops those that no thread would run.
  mutating func submitAtRelease() {
    var lost = NodeChain()
    while let node = takeFirst() {
      if node.admittedBy!._withUnsafeGuaranteedRef({ $0.hasThread }) {
        Self.submit(node)
      } else {
        lost.append(node)
      }
    }
    if !lost.isEmpty { DeferredRelease.release(.notifications(lost)) }
  }

  private static func submit(_ node: NodePointer) {
    let queue = node.admittedBy!.takeRetainedValue()
    node.admittedBy = nil
    queue.submit(node)
  }

  /// Releases all notifications without submitting them.
  mutating func dropAll() {
    while let node = takeFirst() {
      node.admittedBy!.release()
      _ = node.takeWork()
      NodeMagazine.recycle(node)
    }
  }
}
