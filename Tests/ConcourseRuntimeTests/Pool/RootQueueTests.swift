import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("Root queues")
  struct RootQueueTests {
    @Test("S19, S45 every level has its root, unspecified shares that of default")
    func levels() {
      _ = DispatchQueue.global()
      let levels: [QoSLevel] = [.background, .utility, .default, .userInitiated, .userInteractive]
      for level in levels {
        #expect(Runtime.root(at: level).takeUnretainedValue().level == level)
        #expect(DispatchQueue.global(at: level).asGlobal.rootLevel == level)
      }
      #expect(Runtime.root(at: .unspecified).takeUnretainedValue().level == .default)
      #expect(DispatchQueue.global(at: .unspecified) === DispatchQueue.global(at: .default))
      #expect(DispatchQueue(label: "plain").targetQueue === DispatchQueue.global())
    }

    @Test("S2 items of a global queue start in the order of their submission")
    func startOrder() async {
      await #expect(processExitsWith: .success) {
        let width = PoolSize.width
        let blocked = DispatchGroup()
        let started = DispatchSemaphore(value: 0)
        let goOn = Tally()
        for _ in 0..<width {
          DispatchQueue.global().async(group: blocked) {
            started.signal()
            _ = awaitValue { goOn.value > 0 }
          }
        }
        for _ in 0..<width { #expect(comes(started)) }
        let order = Shared<[Int]>([])
        for number in 0..<300 {
          DispatchQueue.global().async(group: blocked) { order.change { $0.append(number) } }
        }
        goOn.add()
        #expect(empties(blocked))
        #expect(order.value.count == 300)
        // Each worker takes the oldest item, but may be overtaken between taking it and noting it. The monitor may
        // have added a worker for each tenth of a second in which the others computed.
        let displaced = order.value.enumerated().filter { abs($0.offset - $0.element) > 64 }.count
        #expect(displaced < 30)
      }
    }

    @Test("S51 higher classes go first when the pool is busy, and lower ones are not forgotten")
    func preference() async {
      await #expect(processExitsWith: .success) {
        // A class that waits for as long as the machine runs no worker has had its precedence.
        precondition((0..<5).contains { _ in Self.higherClassGoesFirst() })
      }
    }

    @Test("S51 items that compute without end leave a lower class of their band its turn")
    func endlessHigherClass() async {
      await #expect(processExitsWith: .success) {
        // The monitor adds a worker after 0.1 s, and each next one after up to 3.2 s more: a hundred items of the higher
        // class could take all that come while this test waits.
        let begun = Tally()
        for _ in 0..<PoolSize.width + 100 {
          DispatchQueue.global(at: .userInitiated).async {
            begun.add()
            while true { Processor.pause() }
          }
        }
        precondition(awaitValue { begun.value >= PoolSize.width })
        let ran = DispatchSemaphore(value: 0)
        DispatchQueue.global(at: .default).async { ran.signal() }
        precondition(comes(ran))
      }
    }

    private static func higherClassGoesFirst() -> Bool {
      let width = PoolSize.width
      let group = DispatchGroup()
      let started = DispatchSemaphore(value: 0)
      let goOn = Tally()
      for _ in 0..<width {
        DispatchQueue.global(qos: .userInteractive).async(group: group) {
          started.signal()
          _ = awaitValue { goOn.value > 0 }
        }
      }
      for _ in 0..<width { precondition(comes(started)) }
      let order = Shared<[QoSLevel]>([])
      let ran = Tally()
      for qosClass in [DispatchQoS.QoSClass.default, .userInteractive] {
        for _ in 0..<200 {
          DispatchQueue.global(qos: qosClass).async(group: group) {
            // An item that an added worker runs before `goOn` shows nothing: the others were not submitted yet.
            if goOn.value > 0 { order.change { $0.append(QoSLevel(qosClass)) } }
            ran.add()
          }
        }
      }
      goOn.add()
      precondition(empties(group))
      precondition(ran.value == 400)
      let urgent = order.value.count { $0 == .userInteractive }
      let first = order.value.prefix(urgent).count { $0 == .userInteractive }
      return first >= urgent * 3 / 4
    }

    @Test("S12 global and main queues outlive every reference")
    func immortal() {
      for _ in 0..<1000 {
        var queue: DispatchQueue? = .global(qos: .utility)
        queue?.sync {}
        queue = DispatchQueue.main
        _ = queue?.label
        queue = nil
      }
      #expect(DispatchQueue.global(qos: .utility) === DispatchQueue.global(qos: .utility))
      #expect(DispatchQueue.main === DispatchQueue.main)
    }
  }
}
