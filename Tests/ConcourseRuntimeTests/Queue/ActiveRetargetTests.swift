import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// Queues of `dispatch_queue_create`, whose target may change while they are active.
  @Suite("Changing the target of an active queue")
  struct ActiveRetargetTests {
    static func makeQueue(_ label: String, concurrent: Bool = false) -> DispatchQueue {
      DispatchQueue(
        cLabel: label, isConcurrent: concurrent, qos: .unspecified, isInactive: false, target: nil,
        mayChangeTarget: true)
    }

    @Test("S22 an idle queue changes at once", arguments: [false, true])
    func idle(concurrent: Bool) {
      let queue = Self.makeQueue("idle", concurrent: concurrent)
      let target = DispatchQueue(label: "target")
      queue.setTarget(queue: target)
      #expect(queue.targetQueue === target)
      queue.sync { dispatchPrecondition(condition: .onQueue(target)) }
      queue.setTarget(queue: nil)
      #expect(queue.targetQueue === DispatchQueue.global())
      queue.sync { dispatchPrecondition(condition: .notOnQueue(target)) }
    }

    @Test("S22 items that were there before run where they were to run", arguments: [false, true])
    func busy(concurrent: Bool) {
      let queue = Self.makeQueue("busy", concurrent: concurrent)
      let (first, second) = (DispatchQueue(label: "first"), DispatchQueue(label: "second"))
      queue.setTarget(queue: first)
      let (started, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let group = DispatchGroup()
      queue.async(group: group) {
        started.signal()
        _ = comes(goOn)
      }
      queue.async(group: group) { dispatchPrecondition(condition: .onQueue(first)) }
      #expect(comes(started))
      queue.setTarget(queue: second)
      queue.async(group: group) {
        dispatchPrecondition(condition: .onQueue(second))
        dispatchPrecondition(condition: .notOnQueue(first))
      }
      #expect(queue.targetQueue === first)
      goOn.signal()
      #expect(empties(group))
      #expect(queue.targetQueue === second)
    }

    @Test("S22 from one serial target to the other and back, under load: nothing is lost, nothing overlaps")
    func underLoad() {
      let targets = (0..<2).map { DispatchQueue(label: "target \($0)") }
      let inside = targets.map { _ in Unprotected(0) }
      let queue = Self.makeQueue("moving")
      queue.setTarget(queue: targets[0])
      let ran = Tally()
      let overlaps = Tally()
      let rounds = Sanitizer.shrunk(20_000)
      let group = DispatchGroup()
      @Sendable func item() {
        guard let here = targets.firstIndex(where: { _dispatchPreconditionTest(.onQueue($0)) }) else {
          return
        }
        inside[here].value += 1
        if inside[here].value != 1 { overlaps.add(1) }
        inside[here].value -= 1
        ran.add(1)
      }
      let ended = onThreads(4) { thread in
        for round in 0..<rounds {
          switch thread {
          case 0: queue.async(group: group, execute: item)
          case 1: queue.sync(execute: item)
          case 2: targets[round % 2].async(group: group, execute: item)
          default: if round % 16 == 0 { queue.setTarget(queue: targets[round / 16 % 2]) }
          }
        }
      }
      #expect(ended && empties(group))
      #expect(ran.value == 3 * rounds)
      #expect(overlaps.value == 0)
    }

    @Test("S22 queues that have been one another's targets in turn do not keep each other")
    func inTurn() {
      let gone = DispatchSemaphore(value: 0)
      do {
        let (one, other) = (Self.makeQueue("one"), Self.makeQueue("other"))
        for queue in [one, other] { queue.setSpecific(key: Self.farewell, value: Farewell(gone)) }
        one.setTarget(queue: other)
        one.setTarget(queue: nil)
        other.setTarget(queue: one)
        other.sync { dispatchPrecondition(condition: .onQueue(one)) }
      }
      for _ in 0..<2 { #expect(comes(gone)) }
    }

    @Test("S22 a target goes when the queue has left it in its turn", arguments: [false, true])
    func left(concurrent: Bool) {
      let queue = Self.makeQueue("leaving", concurrent: concurrent)
      let (started, goOn, gone) =
        (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      do {
        let former = DispatchQueue(label: "former")
        former.setSpecific(key: Self.farewell, value: Farewell(gone))
        queue.setTarget(queue: former)
      }
      queue.async {
        started.signal()
        _ = comes(goOn)
      }
      #expect(comes(started))
      queue.setTarget(queue: nil)
      #expect(gone.wait(timeout: .now()) == .timedOut)
      goOn.signal()
      #expect(comes(gone))
    }

    @Test("S22 from one short-lived target to the next, while entries of all classes come")
    func shortLivedTargets() {
      let queue = Self.makeQueue("moving")
      let ran = Tally()
      let rounds = Sanitizer.shrunk(20_000)
      let group = DispatchGroup()
      let classes: [DispatchQoS] = [.background, .utility, .default, .userInitiated, .userInteractive]
      let ended = onThreads(3) { thread in
        for round in 0..<rounds {
          switch thread {
          case 0, 1:
            queue.async(group: group, qos: classes[round % 5], flags: .enforceQoS) { ran.add(1) }
          default:
            if round % 8 == 0 { queue.setTarget(queue: DispatchQueue(label: "target \(round)")) }
          }
        }
      }
      #expect(ended && empties(group))
      #expect(ran.value == 2 * rounds)
    }

    private static let farewell = DispatchSpecificKey<Farewell>()

    /// Tells when it is deinitialised.
    private final class Farewell: Sendable {
      private let gone: DispatchSemaphore
      init(_ gone: DispatchSemaphore) { self.gone = gone }
      deinit { gone.signal() }
    }
  }

  @Suite("Limited width")
  struct WidthTests {
    @Test("S14 no more items run at once than the limit allows, and all of them run", arguments: [1, 2, 3])
    func limit(width: Int) {
      let queue = DispatchQueue(label: "narrow", attributes: .concurrent)
      queue.setWidth(width)
      let (inside, most, ran) = (Tally(), Tally(), Tally())
      let group = DispatchGroup()
      @Sendable func item() {
        let count = inside.add(1)
        if count > width { most.add(1) }
        inside.add(-1)
        ran.add(1)
      }
      let rounds = Sanitizer.shrunk(5000)
      let ended = onThreads(3) { thread in
        for round in 0..<rounds {
          switch thread {
          case 0: queue.async(group: group, execute: item)
          case 1: queue.sync(execute: item)
          default:
            if round % 8 == 0 {
              queue.async(group: group, flags: .barrier, execute: item)
            } else {
              queue.async(group: group, execute: item)
            }
          }
        }
      }
      #expect(ended && empties(group))
      #expect(ran.value == 3 * rounds)
      #expect(most.value == 0)
    }

    @Test("S14 a wider limit lets those in that wait")
    func widened() {
      let queue = DispatchQueue(label: "widened", attributes: .concurrent)
      queue.setWidth(1)
      let (started, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let group = DispatchGroup()
      queue.async(group: group) {
        started.signal()
        _ = comes(goOn)
      }
      #expect(comes(started))
      queue.async(group: group) { goOn.signal() }
      queue.setWidth(2)
      #expect(empties(group))
    }

    @Test("S14 a limit below zero means no limit")
    func none() {
      let queue = DispatchQueue(label: "wide", attributes: .concurrent)
      queue.setWidth(1)
      queue.setWidth(-3)
      let arrived = DispatchSemaphore(value: 0)
      let goOn = DispatchSemaphore(value: 0)
      for _ in 0..<3 {
        queue.async {
          arrived.signal()
          _ = comes(goOn)
        }
      }
      for _ in 0..<3 { #expect(comes(arrived)) }
      for _ in 0..<3 { goOn.signal() }
      queue.sync(flags: .barrier) {}
    }
  }

  @Suite("Contexts and finalizers")
  struct ContextTests {
    private final class Record: Sendable {
      let finalized = DispatchSemaphore(value: 0)
    }

    @Test(
      "the finalizer runs once with the context of the moment, on the target queue, after the object has gone"
    )
    func finalizer() {
      let record = Record()
      let context = Unmanaged.passUnretained(record).toOpaque()
      do {
        let queue = DispatchQueue(label: "with context")
        queue.context = UnsafeMutableRawPointer(bitPattern: 8)
        queue.setFinalizer {
          Unmanaged<Record>.fromOpaque($0!).takeUnretainedValue().finalized.signal()
        }
        queue.context = context
        #expect(queue.context == context)
      }
      #expect(comes(record.finalized))
      #expect(record.finalized.wait(timeout: .now()) == .timedOut)
    }

    @Test("a source's finalizer comes after its cancel handler")
    func source() {
      let record = Record()
      let queue = DispatchQueue(label: "events")
      let cancelled = DispatchSemaphore(value: 0)
      do {
        let source = DispatchSource.make(.dataAdd, handle: 0, mask: 0, queue: queue)!
        source.context = Unmanaged.passUnretained(record).toOpaque()
        source.setFinalizer { Unmanaged<Record>.fromOpaque($0!).takeUnretainedValue().finalized.signal() }
        source.setEventHandler { (_: UnsafeMutableRawPointer?) in }
        source.setCancelHandler {
          #expect(record.finalized.wait(timeout: .now()) == .timedOut)
          cancelled.signal()
        }
        source.activate()
        source.cancel()
      }
      #expect(comes(cancelled))
      #expect(comes(record.finalized))
    }

    @Test("S102 an event handler gets the context of its activation, a cancel handler that of the moment")
    func settled() {
      let contexts = (1...3).map { UnsafeMutableRawPointer(bitPattern: $0 * 8) }
      let source = DispatchSource.make(.dataAdd, handle: 0, mask: 0, queue: nil)!
      source.context = contexts[0]
      source.setEventHandler { (context: UnsafeMutableRawPointer?) in
        contextOfEvent.change { $0 = UInt(bitPattern: context) }
        contextCalls.signal()
      }
      source.setCancelHandler { (context: UnsafeMutableRawPointer?) in
        contextOfCancel.change { $0 = UInt(bitPattern: context) }
        contextCalls.signal()
      }
      source.context = contexts[1]
      source.activate()
      source.context = contexts[2]
      source.merge(1)
      #expect(comes(contextCalls))
      source.cancel()
      #expect(comes(contextCalls))
      #expect(contextOfEvent.value == 16)
      #expect(contextOfCancel.value == 24)
    }

    @Test("S12 nothing can be attached to global queues and the main queue")
    func wellKnown() {
      for queue in [DispatchQueue.global(), .main] {
        queue.context = UnsafeMutableRawPointer(bitPattern: 8)
        #expect(queue.context == nil)
      }
    }
  }
}

// Globals, since C functions capture nothing.
private let contextOfEvent = Shared<UInt>(0)
private let contextOfCancel = Shared<UInt>(0)
private let contextCalls = DispatchSemaphore(value: 0)
