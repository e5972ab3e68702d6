// F. Global queues, quality of service, attributes.

import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

/// Legacy priorities are deprecated in one runtime and must be tested in both; calls through the
/// protocol are silent.
private protocol LegacyPriorities {
  func queue(_ priority: DispatchQueue.GlobalQueuePriority) -> DispatchQueue
}

private struct Deprecated: LegacyPriorities {
  @available(*, deprecated)
  func queue(_ priority: DispatchQueue.GlobalQueuePriority) -> DispatchQueue {
    DispatchQueue.global(priority: priority)
  }
}

extension Conformance {
  @Suite("F. Global queues and quality of service")
  struct GlobalQueueTests {
    @Test("S44 a legacy priority names the same queue as its class")
    func legacyPriorities() {
      let legacy: any LegacyPriorities = Deprecated()
      #expect(legacy.queue(.high).label == DispatchQueue.global(qos: .userInitiated).label)
      #expect(legacy.queue(.default).label == DispatchQueue.global(qos: .default).label)
      #expect(legacy.queue(.low).label == DispatchQueue.global(qos: .utility).label)
      #expect(legacy.queue(.background).label == DispatchQueue.global(qos: .background).label)
    }

    @Test("S45 the unspecified class maps to the default queue")
    func unspecified() {
      #expect(
        DispatchQueue.global(qos: .unspecified).label == DispatchQueue.global(qos: .default).label)
    }

    @Test("every global queue runs its items")
    func allRun() {
      let group = DispatchGroup()
      let count = Shared(0)
      for qosClass: DispatchQoS.QoSClass in [
        .background, .utility, .default, .userInitiated, .userInteractive, .unspecified,
      ] {
        for _ in 0..<100 {
          DispatchQueue.global(qos: qosClass).async(group: group) { count.increment() }
        }
      }
      #expect(group.empties())
      #expect(count.value == 600)
    }

    @Test("S46 a queue reports the class and relative priority it was created with")
    func queueQoS() {
      for qosClass: DispatchQoS.QoSClass in [.background, .utility, .default, .userInitiated] {
        for relativePriority in [0, -1, -15] {
          let qos = DispatchQoS(qosClass: qosClass, relativePriority: relativePriority)
          #expect(DispatchQueue(label: "qos", qos: qos).qos == qos)
          #expect(DispatchQueue(label: "qos", qos: qos, attributes: .concurrent).qos == qos)
        }
      }
      #expect(DispatchQueue(label: "none").qos == .unspecified)
      #expect(DispatchQueue(label: "none", attributes: .concurrent).qos == .unspecified)
    }

    @Test("S46 a global queue reports its class")
    func globalQoS() {
      #expect(DispatchQueue.global(qos: .background).qos == .background)
      #expect(DispatchQueue.global(qos: .utility).qos == .utility)
      #expect(DispatchQueue.global(qos: .userInitiated).qos == .userInitiated)
    }

    @Test("S48 every autorelease frequency is accepted and changes nothing")
    func autoreleaseFrequency() {
      for frequency: DispatchQueue.AutoreleaseFrequency in [.inherit, .workItem, .never] {
        let queue = DispatchQueue(label: "frequency", autoreleaseFrequency: frequency)
        let order = Shared([Int]())
        for index in 0..<10 { queue.async { order.change { $0.append(index) } } }
        queue.sync {}
        #expect(order.value == Array(0..<10))
      }
    }

    @Test("S49 every quality of service and flag set of an item is accepted, and the item runs")
    func itemQoS() {
      let queue = DispatchQueue(label: "items", qos: .utility)
      let group = DispatchGroup()
      let count = Shared(0)
      for qos: DispatchQoS in [
        .background, .utility, .default, .userInitiated, .userInteractive, .unspecified,
      ] {
        for bits: UInt in 0..<0x40 {
          let flags = DispatchWorkItemFlags(rawValue: bits)
          queue.async(group: group, qos: qos, flags: flags) { count.increment() }
          queue.async(
            group: group, execute: DispatchWorkItem(qos: qos, flags: flags) { count.increment() })
        }
      }
      #expect(group.empties())
      #expect(count.value == 6 * 0x40 * 2)
    }

    @Test("S51 lower classes progress while higher ones are saturated")
    func lowerClassesProgress() {
      let progressed = Shared(false)
      let done = DispatchSemaphore(value: 0)
      let group = DispatchGroup()
      @Sendable func keepBusy() {
        if !progressed.value {
          DispatchQueue.global(qos: .userInitiated).async(group: group) { keepBusy() }
        }
      }
      for _ in 0..<32 { keepBusy() }
      DispatchQueue.global(qos: .background).async {
        progressed.set(true)
        done.signal()
      }
      #expect(done.comes())
      progressed.set(true)
      #expect(group.empties())
    }

    #if CONCOURSE
      // Incumbent: the default global queue reports unspecified, user-interactive is merged into
      // user-initiated, and each access makes a new object.
      @Test("S46 user-interactive is a class of its own")
      func userInteractive() {
        let qos = DispatchQoS(qosClass: .userInteractive, relativePriority: -3)
        #expect(DispatchQueue(label: "qos", qos: qos).qos == qos)
      }

      @Test("S46 every global queue reports its class")
      func allGlobalQoS() {
        #expect(DispatchQueue.global().qos == .default)
        #expect(DispatchQueue.global(qos: .default).qos == .default)
        #expect(DispatchQueue.global(qos: .userInteractive).qos == .userInteractive)
      }

      @Test("S44 the same global or main queue is the same object at each access")
      func identity() {
        #expect(DispatchQueue.main === DispatchQueue.main)
        #expect(DispatchQueue.global() === DispatchQueue.global(qos: .default))
        let legacy: any LegacyPriorities = Deprecated()
        #expect(legacy.queue(.low) === DispatchQueue.global(qos: .utility))
        #expect(DispatchQueue.global() !== DispatchQueue.global(qos: .utility))
      }

      // Incumbent: a plain queue that targets the background queue reports background.
      @Test("S46 a queue without a class of its own reports none, whatever its target")
      func targetQoS() {
        let queue = DispatchQueue(label: "plain", target: .global(qos: .background))
        #expect(queue.qos == .unspecified)
      }
    #endif
  }
}
