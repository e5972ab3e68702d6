// Many bootstraps of clients and servers. `Bootstraps` says what each does, and what a stall shows.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("Bootstraps")
  struct BootstrapTests {
    /// How many of each kind: `CONCOURSE_BOOTSTRAPS`.
    private let count = getenv("CONCOURSE_BOOTSTRAPS").flatMap { Int(String(cString: $0)) } ?? 300

    /// Makes bootstraps on two threads that no pool knows, so that the pool is idle between the steps. The test itself
    /// holds no thread of the pool of Swift's runtime, which other tests block meanwhile.
    private func run(_ count: Int, _ body: @escaping @Sendable (Bootstrap) -> Void) async {
      let stalls = Shared([String]())
      let lanes = Shared(2)
      await withCheckedContinuation { continuation in
        for lane in 0..<2 {
          startThread {
            for number in stride(from: lane, to: count, by: 2) where stalls.value.isEmpty {
              let bootstrap = Bootstrap(number)
              body(bootstrap)
              if let stall = bootstrap.finish(within: patience) { stalls.change { $0.append(stall) } }
            }
            var left = 0
            lanes.change {
              $0 -= 1
              left = $0
            }
            if left == 0 { continuation.resume() }
          }
        }
      }
      for stall in stalls.value { Issue.record("\(stall)") }
    }

    @Test("S108 a server answers a datagram, and the client is told")
    func datagrams() async { await run(count) { $0.datagrams() } }

    @Test("S108, S110 a client connects, asks and is told")
    func streams() async { await run(count) { $0.streams(clients: 1) } }

    @Test("S108, S110 many clients connect at once, and all are told")
    func storm() async { await run(count / 30) { $0.streams(clients: 32) } }

    @Test("S104 tasks wait by sources, one after the other on the same sockets")
    func tasks() async {
      await run(count) { $0.tasks(streams: false) }
      await run(count) { $0.tasks(streams: true) }
    }

    @Test("S143 loops of the program's own, tasks and items that block for one another")
    func loops() async {
      await run(count) { $0.loops(sleeping: 0) }
      await run(count / 30) { $0.loops(sleeping: 5_000_000) }
    }

    // The toolchain's Dispatch does not report what is left of a connection that has been hung up, nor the error that a
    // datagram met.
    #if CONCOURSE || OVERLAY
      @Test("S108, S109 a peer that sends and is gone while its connection is being watched")
      func shortVisits() async { await run(count) { $0.shortVisit() } }

      @Test("S108, S110 a port where no one listens: the error is reported")
      func refusals() async { await run(count) { $0.refusal() } }
    #endif
  }
}
