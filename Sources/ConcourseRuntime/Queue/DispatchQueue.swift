/// A queue of work items, run in first-in first-out order by threads of the pool or, for the main
/// queue, by the main thread.
///
/// A **serial** queue runs one item at a time. A **concurrent** queue starts items in order and lets
/// them overlap, except for barriers, which run alone. **Global** queues are the concurrent queues
/// that every hierarchy of targets ends in, one for each quality-of-service class. All calls may be
/// made from any thread. A queue stays alive while it holds work, so the last reference may be
/// dropped right after submitting.
///
/// Matching C type: `dispatch_queue_t`.
public class DispatchQueue: DispatchObject {
  // The largest fields come first: without gaps an object has 88 bytes, for which malloc takes 96. Clang's thread sanitizer
  // reads the first one and `width` (CConcourseABI/objects.c).

  /// The target, with a reference; nil only for global queues and the main queue. It changes while the
  /// queue is inactive, or is changed by the queue's owner: see `DispatchQueue+Target.swift`.
  private let targetReference: SeldomChanged<Unmanaged<DispatchQueue>?>
  @usableFromInline final let state: QueueState
  @usableFromInline final let list = WorkList()

  /// The label given at creation; empty if there was none. For debugging: it need not be unique.
  ///
  /// Matching C function: `dispatch_queue_get_label`.
  public final var label: String { name.text }
  let name: QueueName
  /// The level given at creation, or that of a global target; unspecified if none. Changes with the target.
  private let servedLevel: SeldomChanged<QoSLevel>
  /// What `level` means for items that have a level of their own.
  private let servingRule = SeldomChanged<ServingRule>(.exact)
  /// The class that `qos` reports. It changes, with the rule and `ownPriority`, only while the queue is inactive.
  private let ownLevel: SeldomChanged<QoSLevel>
  /// Whether its target may change while it is active, as queues of `dispatch_queue_create` allow.
  final let mayChangeTarget: Bool
  /// An item of a level above this number may have to raise the queue: the number of `level`; -1 if the queue has no class,
  /// and has had items for a lowered band.
  final let raisesAbove: SeldomChanged<Int8>
  /// The number of ordinary items that may run at once, if the state is narrow; otherwise 1 if the queue is serial.
  final let width: SeldomChanged<UInt16>

  @inline(__always)
  init(
    kind: ObjectKind, label: QueueName, qos: DispatchQoS, attributes: Attributes, target: DispatchQueue?,
    mayChangeTarget: Bool = false, overcommits: Bool = false
  ) {
    name = label
    self.mayChangeTarget = mayChangeTarget
    var level = QoSLevel(qos.qosClass)
    ownLevel = SeldomChanged(level)
    var nested = !kind.isLane
    if kind.isLane {
      // No references are counted here: counting would cost more than the rest of creating a queue.
      let chosen =
        target.map { .passUnretained($0) }
        ?? (overcommits ? Overcommit.queue(.default) : DispatchQueue.uncountedGlobal(at: .default))
      let (isGlobal, itsClass) = chosen._withUnsafeGuaranteedRef { ($0.kind == .global, $0.ownClass) }
      nested = !isGlobal
      if level == .unspecified, target != nil, isGlobal { level = itsClass }
      targetReference = SeldomChanged(Self.countedAsTarget(chosen))
      width = SeldomChanged(kind == .concurrent ? Self.noLimit : 1)
    } else {
      targetReference = SeldomChanged(nil)
      width = SeldomChanged(kind == .global ? Self.noLimit : 1)
    }
    servedLevel = SeldomChanged(level)
    raisesAbove = SeldomChanged(Int8(truncatingIfNeeded: level.rawValue))
    state = QueueState(
      plain: kind == .serial, nested: nested,
      inactive: attributes.contains(.initiallyInactive))
    super.init(kind: kind)
    if qos.relativePriority != 0 { ownPriority.value = UInt8(truncatingIfNeeded: 0 &- qos.relativePriority) }
  }

  override func wasMade() { ItemRecording.made(self) }

  deinit {
    let last = state.snapshot
    if last.forbidsEnd { requireEnd() }
    name.free()
    guard let target else { return }
    if last.isNested || uncountedExtrasIfAny != nil { giveUp(target) }
  }

  /// Out of line: most queues have no extras, and a target that is not counted.
  @inline(never)
  private final func giveUp(_ target: Unmanaged<DispatchQueue>) {
    // Before the target is released: a finalizer runs on it.
    extrasIfAny?.setLastQueue(target.takeUnretainedValue())
    // Along a chain of queues, releases must not nest. So `target` has no reference of its own.
    if state.snapshot.isNested, Self.isCounted(target) { DeferredRelease.release(.queue(target)) }
  }

  /// Traps if the last reference was released too early. Out of line: few queues end in such a state.
  @inline(never)
  private final func requireEnd() {
    if state.clearApart() { _ = closeIndicators() }
    let last = state.snapshot
    guard last.forbidsEnd else { return }
    if last.isSuspended {
      Trap.clientBug(
        203,
        "the last reference to queue \"\(label)\" was released while it was suspended; resume it first")
    }
    if last.isInactive {
      Trap.clientBug(
        204,
        "the last reference to queue \"\(label)\" was released while it was inactive; activate it first")
    }
    // In a forked child, the thread that ran the item may not exist.
    let isLeftByFork =
      Process.isForkedChild || Process.isForked && last.isOwned && last.owner != CurrentThread.id
    if !isLeftByFork {
      Trap.clientBug(
        205,
        "the last reference to queue \"\(label)\" was released while an item of it ran, or after longjmp or an "
          + "exception had left one")
    }
  }

  /// Creates a queue that runs its work on the pool.
  ///
  /// - Parameters:
  ///   - label: a name for debugging, by convention in reverse-DNS style.
  ///   - qos: the class to serve the queue's work at; `.unspecified` lets items and submitters decide.
  ///   - attributes: `.concurrent` for a concurrent queue, `.initiallyInactive` for one that holds its
  ///     work until `activate()`; serial and active by default.
  ///   - autoreleaseFrequency: accepted and without effect where there is no Objective-C.
  ///   - target: the queue to run this one's work on; nil means the default-QoS global queue.
  ///
  /// Matching C function: `dispatch_queue_create_with_target`.
  public convenience init(
    label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [],
    autoreleaseFrequency: AutoreleaseFrequency = .inherit, target: DispatchQueue? = nil
  ) {
    self.init(
      kind: attributes.contains(.concurrent) ? .concurrent : .serial, label: QueueName(label), qos: qos,
      attributes: attributes, target: target)
  }

  /// The class and relative priority given at creation; a global queue reports its class.
  ///
  /// Matching C function: `dispatch_queue_get_qos_class`.
  public final var qos: DispatchQoS {
    DispatchQoS(qosClass: ownClass.qosClass, relativePriority: -Int(ownPriority.value))
  }

  final var ownClass: QoSLevel { ownLevel.value }

  /// Sets what `qos` reports.
  final func report(_ qosClass: QoSLevel, relativePriority: Int) {
    ownLevel.value = qosClass
    ownPriority.value = UInt8(clamping: -relativePriority)
  }

  final var rule: ServingRule {
    @inline(__always) get { servingRule.value }
    set { servingRule.value = newValue }
  }

  /// The level at which items are served, as `rule` says.
  package final var level: QoSLevel {
    @inline(__always) get { servedLevel.value }
    set {
      servedLevel.value = newValue
      raisesAbove.value = Int8(truncatingIfNeeded: newValue.rawValue)
    }
  }

  /// The target, without a reference.
  final var target: Unmanaged<DispatchQueue>? {
    @inline(__always) get { targetReference.value }
    set { targetReference.value = newValue }
  }

  /// The target, or nil at the end of the hierarchy.
  final var targetQueue: DispatchQueue? {
    @inline(__always) get { target?.takeUnretainedValue() }
  }

  /// Sets the queue on which this queue's work runs.
  ///
  /// Allowed while the queue is inactive, with immediate effect; an active queue traps, since the old
  /// target may already have its items. Ignored on global queues and the main
  /// queue. A target whose own targets lead back here traps. Matching C function:
  /// `dispatch_set_target_queue`.
  /// - Parameter queue: the new target; nil means the default-QoS global queue.
  public override func setTarget(queue: DispatchQueue?) { retarget(to: queue) }

  /// Adds one to the suspension count: no further item starts until every suspension is resumed.
  ///
  /// The items that run now complete; an item may suspend its own queue. Suspending a target holds
  /// every queue that targets it. Ignored on global queues and the main queue. O(1). Matching C
  /// function: `dispatch_suspend`.
  public override func suspend() { beginSuspension() }

  /// Subtracts one from the suspension count; at zero the queue goes on, unless it is still inactive.
  ///
  /// Traps when there is no suspension to resume, also on an inactive queue. Matching C function:
  /// `dispatch_resume`.
  public override func resume() { endSuspension() }

  /// Lets an initially inactive queue start; no effect on an active one. Activating a queue that has
  /// also been suspended leaves it suspended. Matching C function: `dispatch_activate`.
  public override func activate() { beginActivity() }

  override func newExtras() -> ObjectExtras { QueueExtras() }

  /// Runs the finalizer of an object that is gone.
  /// - Parameter queue: where; nil for the default global queue.
  static func finalize(
    _ context: UnsafeMutableRawPointer?, _ finalizer: ContextFunction, on queue: DispatchQueue?
  ) {
    let queue = queue ?? global(at: .default)
    if queue.hasThread { queue.asyncFunction(context, finalizer, barrier: false) }
  }

  /// Whether an item can run. What the runtime itself would submit when an object is released is dropped otherwise: the
  /// release must not trap in a forked child.
  package final var hasThread: Bool {
    @inline(__always) get { !Process.isForkedChild || endOfHierarchy.kind.isServedByCaller }
  }

  /// A line for debugging: class, label and state.
  public override var description: String {
    "<\(type(of: self)) \"\(label)\": \(kind), \(state.snapshot)>"
  }
}

// SAFETY: `state`, `list`, the target and the level are atomics or guarded by them; everything else is
// immutable.
extension DispatchQueue: @unchecked Sendable {}
