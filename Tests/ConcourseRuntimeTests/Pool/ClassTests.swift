import Testing

@testable import ConcourseRuntime

extension Engine {
  /// Which band serves a queue whose items have several classes. Each test in a process of its own, in which bands rest at
  /// will.
  @Suite("Classes")
  struct ClassTests {
    @Test("a lowered item behind one without a class does not take the queue to the lowered band")
    func behindWithoutClass() async {
      await #expect(processExitsWith: .success) {
        let (normal, background) = (Rest(.default), Rest(.background))
        let target = DispatchQueue(label: "target")
        for queue in [DispatchQueue(label: "queue"), DispatchQueue(label: "nested", target: target)] {
          let names = Names()
          queue.async { names.note() }
          queue.async(qos: .background) { names.note() }
          #expect(!background.hasWork)
          normal.end()
          names.expect(["concourse", "concourse"])
          normal.begin()
        }
      }
    }

    @Test("neither while the queue is held, nor while it is owned, nor behind readers")
    func behindWithoutClassLater() async {
      await #expect(processExitsWith: .success) {
        _ = Rest(.background)
        let names = Names()
        func submit(to queue: DispatchQueue) {
          queue.async(flags: .barrier) { names.note() }
          queue.async(qos: .background, flags: .barrier) { names.note() }
        }
        let target = DispatchQueue(label: "target")
        for target in [nil, target] {
          let inactive = DispatchQueue(label: "inactive", attributes: .initiallyInactive, target: target)
          submit(to: inactive)
          inactive.activate()
          names.expect(["concourse", "concourse"])
          for attributes: DispatchQueue.Attributes in [[], .concurrent] {
            let queue = DispatchQueue(label: "queue", attributes: attributes, target: target)
            queue.suspend()
            submit(to: queue)
            queue.resume()
            names.expect(["concourse", "concourse"])
            queue.sync(flags: .barrier) { submit(to: queue) }
            names.expect(["concourse", "concourse"])
            queue.sync(flags: .barrier) {
              submit(to: queue)
              queue.suspend()
            }
            queue.resume()
            names.expect(["concourse", "concourse"])
            queue.sync { submit(to: queue) }
            names.expect(["concourse", "concourse"])
          }
        }
      }
    }

    @Test("a lowered worker that has got a raised queue leaves it")
    func raisedBefore() async {
      await #expect(processExitsWith: .success) {
        let (normal, background) = (Rest(.default), Rest(.background))
        let queue = DispatchQueue(label: "queue", qos: .background)
        let (names, begun) = (Names(), DispatchSemaphore(value: 0))
        queue.async {
          begun.signal()
          #expect(awaitValue { queue.state.snapshot.isPending })
        }
        for _ in 1...3 { queue.async { names.note() } }
        queue.async(qos: .default, flags: .enforceQoS) { names.note() }
        let second = Runtime.root(at: .default).takeUnretainedValue().take()
        background.end()
        #expect(comes(begun))
        // As a worker of the default band that comes too late.
        runQueue(second!, nil)
        normal.end()
        names.expect(["concourse-bg", "concourse", "concourse", "concourse"])
      }
    }

    @Test(
      "a lowered worker leaves a queue that it drains for a target: either of them has a higher item",
      arguments: ["without a class", "of a higher class", "of the target"])
    func inDrainOfTarget(item: String) async {
      await #expect(processExitsWith: .success) { [item] in
        let target = DispatchQueue(label: "target")
        let queue = DispatchQueue(label: "queue", target: target)
        let raised = item == "of the target" ? target : queue
        let (names, begun) = (Names(), DispatchSemaphore(value: 0))
        queue.async(qos: .background) {
          begun.signal()
          #expect(awaitValue { raised.state.snapshot.level >= .default })
        }
        for _ in 1...5 { queue.async(qos: .background) { names.note() } }
        #expect(comes(begun))
        raised.async(qos: item == "without a class" ? .unspecified : .userInitiated) { names.note() }
        // The worker looks after two entries of either queue.
        let lowered = item == "of the target" ? 2 : 3
        names.expect((1...6).map { $0 <= lowered ? "concourse-bg" : "concourse" })
      }
    }

    @Test("an item without a class below a target without one raises both; below one of background, neither")
    func belowTarget() async {
      await #expect(processExitsWith: .success) {
        let background = Rest(.background)
        let names = Names()
        for qos: DispatchQoS in [.unspecified, .background] {
          let target = DispatchQueue(label: "target", qos: qos)
          let queue = DispatchQueue(label: "queue", target: target)
          for qos: DispatchQoS in [.background, .unspecified] { queue.async(qos: qos) { names.note() } }
          if qos == .background {
            #expect(queue.state.snapshot.level == .background && target.state.snapshot.level == .background)
            background.end()
          }
          let name = qos == .background ? "concourse-bg" : "concourse"
          names.expect([name, name])
        }
      }
    }

    @Test("a workloop without end stops when its target is suspended")
    func workloopBelowHeldQueue() async {
      await #expect(processExitsWith: .success) {
        let target = DispatchQueue(label: "target")
        let workloop = DispatchWorkloop(inactive: "workloop")
        workloop.setTarget(queue: target)
        workloop.activate()
        let begun = DispatchSemaphore(value: 0)
        @Sendable func feed() { workloop.async { feed() } }
        workloop.async {
          feed()
          begun.signal()
        }
        #expect(comes(begun))
        target.suspend()
        #expect(awaitValue { !workloop.state.snapshot.isOwned })
        target.resume()
      }
    }

    @Test("a thread that waits behind lowered items of a queue without a class comes to its turn")
    func waitingThread() async {
      await #expect(processExitsWith: .success) {
        _ = Rest(.background)
        let (queue, other) = (DispatchQueue(label: "queue"), DispatchQueue(label: "other"))
        let done = DispatchSemaphore(value: 0)
        queue.suspend()
        queue.async {}
        // Another queue asks for the worker, too.
        for _ in 1...600 { queue.async(qos: .background) { other.async {} } }
        let before = queue.list.last
        startThread {
          queue.sync {}
          done.signal()
        }
        #expect(awaitValue { queue.list.last != before })
        queue.resume()
        #expect(comes(done))
      }
    }

    @Test("an item without a class behind a thread of background raises the queue")
    func behindLoweredThread() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "queue")
        let (names, done) = (Names(), DispatchSemaphore(value: 0))
        queue.sync {
          DispatchQueue.global(qos: .background).async {
            queue.sync {}
            done.signal()
          }
          #expect(awaitValue { !queue.list.isEmpty })
          Rest.begin(.background)
          queue.async { names.note() }
          queue.suspend()
        }
        queue.resume()
        names.expect(["concourse"])
        #expect(comes(done))
      }
    }

    @Test("a queue that has run empty forgets its lowered items with the next one without a class")
    func forgets() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "queue")
        for _ in 1...2 {
          queue.async(qos: .background) {}
          #expect(queue.raisesAbove.value == -1)
          queue.sync {}
          #expect(awaitValue { queue.list.isEmpty })
          queue.async {}
          #expect(queue.raisesAbove.value == 0)
          queue.sync {}
        }
      }
    }

    @Test("a lowered worker that finds later items, which have no class, leaves the queue")
    func staleEntry() async {
      await #expect(processExitsWith: .success) {
        let background = Rest(.background)
        let (names, begun) = (Names(), DispatchSemaphore(value: 0))
        let queue = DispatchQueue(label: "queue")
        queue.async(qos: .background) {}
        queue.async {}
        #expect(awaitValue { queue.list.isEmpty && !queue.state.snapshot.isOwned })
        #expect(background.hasWork)
        let normal = Rest(.default)
        queue.async {
          begun.signal()
          #expect(awaitValue { queue.state.snapshot.isPending })
        }
        for _ in 1...3 { queue.async { names.note() } }
        let entry = Runtime.root(at: .default).takeUnretainedValue().take()
        background.end()
        #expect(comes(begun))
        runQueue(entry!, nil)
        normal.end()
        names.expect(["concourse-bg", "concourse", "concourse"])
      }
    }
  }
}

/// A band whose workers rest: none takes anything, as if so many others were busy.
private struct Rest {
  private let level: QoSLevel
  private var band: Band { Self.band(of: level) }

  init(_ level: QoSLevel) {
    self.level = level
    let done = DispatchSemaphore(value: 0)
    DispatchQueue.global(at: level).async { done.signal() }
    #expect(comes(done))
    begin()
  }

  func begin() {
    #expect(awaitValue { band.counters.snapshot.active == 0 })
    Self.begin(level)
  }

  /// As an instance, although a worker is active.
  static func begin(_ level: QoSLevel) { band(of: level).counters.apply(.init(active: 1_000)) }

  private static func band(of level: QoSLevel) -> Band {
    Runtime.shared.bands.first { $0.level == level }!
  }

  func end() {
    band.counters.apply(.init(active: -1_000))
    band.noteWork()
  }

  var hasWork: Bool { band.hasWork }
}

/// The names of the threads that have run items.
private final class Names: Sendable {
  private let names = Shared<[String]>([])

  func note() {
    let name = threadName()
    names.change { $0.append(name) }
  }

  /// That items have run on such threads since the last call.
  func expect(_ expected: [String]) {
    #expect(awaitValue { names.value.count >= expected.count })
    #expect(names.value == expected)
    names.change { $0 = [] }
  }
}
