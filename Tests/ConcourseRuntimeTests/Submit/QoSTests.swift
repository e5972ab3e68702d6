import Testing

@testable import ConcourseRuntime

extension Engine {
  /// The level at which an item is served, and the level that it passes on.
  @Suite("QoS propagation")
  struct QoSTests {
    @Test("S49 an item inherits the submitter's class unless item or queue has its own")
    func inheritance() {
      let plain = DispatchQueue(label: "plain")
      let utility = DispatchQueue(label: "utility", qos: .utility)
      #expect(plain.servingLevel(.unspecified, []) == .unspecified)
      #expect(plain.servingLevel(.background, []) == .background)
      #expect(utility.servingLevel(.unspecified, []) == .utility)
      for (submitter, inherited) in [
        (DispatchQoS.QoSClass.background, QoSLevel.background), (.utility, .utility), (.default, .default),
        (.userInitiated, .userInitiated), (.userInteractive, .userInitiated),
      ] {
        let level = from(submitter) {
          (plain.servingLevel(.unspecified, []), Frame.inheritedLevel, utility.servingLevel(.unspecified, []))
        }
        #expect(level == (inherited, inherited, .utility))
      }
    }

    @Test("S49 the queue's class wins for inherit, the item's for enforce, and neither lowers the result")
    func precedence() {
      let queue = DispatchQueue(label: "utility", qos: .utility)
      #expect(queue.servingLevel(.userInitiated, []) == .utility)
      #expect(queue.servingLevel(.userInitiated, .inheritQoS) == .utility)
      #expect(queue.servingLevel(.userInitiated, .enforceQoS) == .userInitiated)
      #expect(queue.servingLevel(.background, .enforceQoS) == .utility)
      // Enforce beats inherit.
      #expect(queue.servingLevel(.userInitiated, [.inheritQoS, .enforceQoS]) == .userInitiated)
    }

    @Test("S52 noQoS strips the item's class, detached the submitter's")
    func flags() {
      let plain = DispatchQueue(label: "plain")
      #expect(plain.servingLevel(.userInitiated, .noQoS) == .unspecified)
      let within = from(.background) {
        (
          plain.servingLevel(.unspecified, .detached), plain.servingLevel(.unspecified, .noQoS),
          plain.servingLevel(.utility, .detached)
        )
      }
      #expect(within == (.unspecified, .unspecified, .utility))
    }

    @Test("S49, S52 levels inside items: async inherits, sync keeps the caller's")
    func insideItems() {
      let plain = DispatchQueue(label: "plain")
      let high = DispatchQueue(label: "high", qos: .userInitiated)
      #expect(levelInside(plain, qos: .utility) == .utility)
      #expect(levelInside(high, qos: .utility) == .userInitiated)
      let synchronous = from(.background) { high.sync { Frame.current?.pointee.level } }
      #expect(synchronous == .background)
      let asynchronous = from(.background) { levelInside(plain, qos: .unspecified) }
      #expect(asynchronous == .background)
    }

    @Test("S52 assignCurrentContext captures the class at creation")
    func assignment() {
      let plain = DispatchQueue(label: "plain")
      let level = Shared<QoSLevel?>(nil)
      let item = from(.background) {
        Unprotected(
          DispatchWorkItem(flags: .assignCurrentContext) {
            level.change { $0 = Frame.current?.pointee.level }
          })
      }
      let done = DispatchSemaphore(value: 0)
      plain.async(execute: item.value)
      plain.async { done.signal() }
      #expect(comes(done))
      #expect(level.value == .background)
    }

    @Test("S49, S50 an item that a background item submits to a plain queue runs in the background band")
    func band() {
      let plain = DispatchQueue(label: "plain")
      let nice = Shared<[Int32]>([])
      let done = DispatchSemaphore(value: 0)
      DispatchQueue.global(qos: .background).async {
        plain.async {
          let own = threadNice()
          nice.change { $0.append(own) }
          done.signal()
        }
      }
      #expect(comes(done))
      #expect(nice.value == [min(threadNice() + 10, 19)])
    }

    @Test("S21 a queue with its own class runs at it, not at that of its global target")
    func ownClass() {
      let queue = DispatchQueue(label: "own", qos: .utility, target: .global(qos: .background))
      let named = DispatchQueue(label: "named", target: .global(qos: .background))
      #expect(levelInside(queue, qos: .unspecified) == .utility)
      #expect(levelInside(named, qos: .unspecified) == .background)
    }

    @Test("S49 an urgent item in a queue that waits at a lower level raises the queue")
    func raised() {
      let queue = DispatchQueue(label: "mixed")
      queue.suspend()
      let names = Shared<[String]>([])
      let done = DispatchSemaphore(value: 0)
      queue.async(qos: .background) {
        let own = threadName()
        names.change { $0.append(own) }
      }
      queue.async(qos: .userInitiated) { done.signal() }
      queue.resume()
      #expect(comes(done))
      #expect(names.value == ["concourse"])
    }
  }
}

/// The result of `body` inside an item of a global queue.
private func from<Result>(_ qosClass: DispatchQoS.QoSClass, _ body: @escaping @Sendable () -> Result)
  -> Result
{
  let result = Unprotected<Result?>(nil)
  let done = DispatchSemaphore(value: 0)
  DispatchQueue.global(qos: qosClass).async {
    result.value = body()
    done.signal()
  }
  #expect(comes(done))
  return result.value!
}

/// The level inside an asynchronous item.
private func levelInside(_ queue: DispatchQueue, qos: DispatchQoS) -> QoSLevel? {
  let level = Shared<QoSLevel?>(nil)
  let done = DispatchSemaphore(value: 0)
  queue.async(qos: qos) {
    level.change { $0 = Frame.current?.pointee.level }
    done.signal()
  }
  #expect(comes(done))
  return level.value
}
