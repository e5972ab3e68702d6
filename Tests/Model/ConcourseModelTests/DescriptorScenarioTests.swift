import Testing

@testable import ConcourseModel

/// Descriptors in the event queue: watches that share one, events that come late, and the operations of a channel.
extension ModelSuite {
  @Suite struct Descriptors {
    // MARK: Watches

    /// An event of a descriptor whose watch is removed meanwhile does not reach the next user of its registration.
    private static func lateEvent() {
      Model.setProcessors(1)
      EventLoop.use()
      let pipes = (0..<2).map { _ in ModelKernel.make(.pipe) }
      let log = Model.Log<Int>()
      let watches = pipes.indices.map { index in
        FileWatch(descriptor: pipes[index], interest: .read, owner: WatchOwner { log.append(index) })
      }
      watches[0].install()
      Model.thread("outside") { ModelKernel.write(pipes[0]) }
      Model.thread("owner") {
        watches[0].remove()
        watches[1].install()
      }
      Model.run()
      Model.check(!log.entries.contains(1), "the empty pipe is said to be ready")
    }

    @Test func lateEvents() {
      expectComplete(Model.explore("an event comes late", bound: 2, stale: 0) { Self.lateEvent() })
    }

    /// Two watches of one descriptor. Each is notified of its own readiness, and the kernel is asked again for the
    /// other; both learn of a hang-up.
    private static func twoDirections(endsWithHangUp: Bool) {
      Model.setProcessors(1)
      EventLoop.use()
      let socket = ModelKernel.make(.pipe)
      let log = Model.Log<String>()
      for (interest, name) in [(FileWatch.Interest.read, "read"), (.write, "write")] {
        FileWatch(descriptor: socket, interest: interest, owner: WatchOwner { log.append(name) }).install()
      }
      // The second byte comes while the watch for reading is silent.
      for _ in 0..<2 {
        Model.thread("peer") { ModelKernel.write(socket) }
        Model.run()
        Model.check(log.entries == ["read"], "notified: \(log.entries)")
      }
      Model.thread("peer") {
        if endsWithHangUp { ModelKernel.hangUp(socket) } else { ModelKernel.makeRoom(socket) }
      }
      Model.run()
      Model.check(log.entries == ["read", "write"], "notified: \(log.entries)")
    }

    @Test(arguments: [false, true]) func twoWatchesOfADescriptor(endsWithHangUp: Bool) {
      expectComplete(
        Model.explore("two watches of a descriptor", bound: 1, freshBound: 3) {
          Self.twoDirections(endsWithHangUp: endsWithHangUp)
        })
      expectFound(PlantedFault(.noWrite, "ModelKernel", "control(_:_:_:_:token:)"), stale: 0) {
        Self.twoDirections(endsWithHangUp: endsWithHangUp)
      }
    }

    /// A watch for changes is notified once for each, though the descriptor stays ready.
    private static func changes() {
      Model.setProcessors(1)
      EventLoop.use()
      let pipe = ModelKernel.make(.pipe)
      let log = Model.Log<Int>()
      let watch = FileWatch(descriptor: pipe, interest: .read, owner: WatchOwner { log.append(1) })
      watch.install()
      Model.thread("peer") { ModelKernel.write(pipe) }
      Model.run()
      // Asking again reports what is there.
      Model.thread("owner") { watch.rearmForChange() }
      Model.run()
      Model.thread("peer") { ModelKernel.write(pipe) }
      Model.run()
      Model.check(log.entries.count == 3, "notified \(log.entries.count) times")
    }

    @Test func aWatchForChanges() {
      expectComplete(Model.explore("a watch for changes", bound: 1, freshBound: 3) { Self.changes() })
    }

    // MARK: The operations of a descriptor

    // SAFETY: guarded by `lock`.
    private final class Operations: @unchecked Sendable {
      final class Operation {
        let lane: DescriptorSchedule<Operation, Int>.Lane
        init(_ lane: DescriptorSchedule<Operation, Int>.Lane) { self.lane = lane }
      }

      private let lock = Lock(.test)
      private var schedule = DescriptorSchedule<Operation, Int>()
      private let streams = Model.Section()
      private let all = Model.Section()
      let log = Model.Log<Int>()

      func add(_ lane: DescriptorSchedule<Operation, Int>.Lane) {
        lock.withLock { schedule.add(Operation(lane), lane) }
        goOn()
      }

      func addBarrier() {
        lock.withLock { schedule.addBarrier(0) }
        goOn()
      }

      /// Runs what may start, until nothing may.
      private func goOn() {
        while let start = lock.withLock({ schedule.start() }) {
          switch start {
          case .operation(let operation):
            all.together { if operation.lane == .streamRead { streams.alone() } }
            log.append(1)
            lock.withLock { schedule.finish(operation.lane) }
          case .barrier:
            all.alone { log.append(100) }
            lock.withLock { schedule.finishBarrier() }
          }
        }
      }

      var isIdle: Bool { lock.withLock { schedule.isIdle } }
    }

    private static func operations() {
      let operations = Operations()
      Model.thread("reader") {
        operations.add(.streamRead)
        operations.add(.streamRead)
      }
      Model.thread("random") { operations.add(.random) }
      Model.thread("barrier") { operations.addBarrier() }
      Model.run()
      Model.check(
        operations.log.entries.reduce(0, +) == 103 && operations.isIdle, "\(operations.log.entries)")
    }

    @Test func operationsOfADescriptor() {
      expectComplete(Model.explore("operations of a descriptor", bound: 1) { Self.operations() })
      expectFound(PlantedFault(.noWrite, "Lock", "lock()"), PlantedFault(.relaxed, "Lock")) {
        Self.operations()
      }
    }
  }
}
