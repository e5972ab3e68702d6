import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

typealias MemoryPressureEvent = DispatchSource.MemoryPressureEvent

extension Engine {
  @Suite("Memory pressure sources")
  struct MemoryPressureSourceTests {
    private let millisecond: UInt64 = 1_000_000

    /// A source that reads every 20 ms, and whose levels end 100 ms after the last notice.
    private func watch(
      _ root: TemporaryDirectory, _ mask: MemoryPressureEvent = .all,
      triggers: @escaping @Sendable () -> [PressureTrigger]? = { nil }
    ) -> (WatchedSource, MemoryPressureBackend) {
      let backend = MemoryPressureBackend(
        mask: mask, gauge: MemoryGauge(root: root.path), level: PressureLevel(holdTime: 100 * millisecond),
        pause: 20 * millisecond, openTriggers: triggers)
      return (WatchedSource(DispatchSource(memoryPressure: backend, mask, nil)), backend)
    }

    private func meminfo(_ available: Int) -> String { "MemTotal: 1000 kB\nMemAvailable: \(available) kB\n" }

    @Test("S114 without notices memory is read again and again")
    func readings() {
      let root = TemporaryDirectory()
      root.write("proc/meminfo", meminfo(500))
      let (watched, backend) = watch(root)
      #expect(!backend.isNotified)
      watched.expects(MemoryPressureEvent.warning) { root.write("proc/meminfo", meminfo(80)) }
      watched.expects(MemoryPressureEvent.critical) { root.write("proc/meminfo", meminfo(20)) }
      watched.expects(MemoryPressureEvent.normal) { root.write("proc/meminfo", meminfo(700)) }
    }

    @Test("S114 memory that is already short at activation is reported")
    func shortAtOnce() {
      let root = TemporaryDirectory()
      root.write("proc/meminfo", meminfo(30))
      let (watched, _) = watch(root)
      #expect(watched.reports.comes(MemoryPressureEvent.critical.rawValue))
    }

    @Test("S114 only the requested levels are reported")
    func mask() {
      let root = TemporaryDirectory()
      root.write("proc/meminfo", meminfo(80))
      let (watched, _) = watch(root, .critical)
      watched.expects(MemoryPressureEvent.critical) { root.write("proc/meminfo", meminfo(20)) }
      #expect(watched.reports.all.count == 1)
    }

    @Test("S114, trap 19: if nothing can be read, the source is silent and can be cancelled")
    func nothingToRead() {
      let (watched, backend) = watch(TemporaryDirectory())
      #expect(!backend.isNotified)
      watched.cancel()
      #expect(watched.reports.all.isEmpty)
    }

    @Test(
      "S114, trap 6: if the kernel refuses notices, memory is read",
      arguments: [
        (SystemCall.open, ENOENT), (.open, EACCES), (.write, EINVAL), (.write, EPERM), (.write, EOPNOTSUPP),
      ])
    func refusedNotices(call: SystemCall, errno: Int32) {
      defer { SystemScript.clear() }
      SystemScript.refuse(call, with: errno)
      let root = TemporaryDirectory()
      root.write("proc/meminfo", meminfo(500))
      let (watched, backend) = watch(root) { MemoryPressureBackend.triggers(of: MemoryGauge(root: "")) }
      #expect(!backend.isNotified)
      watched.expects(MemoryPressureEvent.warning) { root.write("proc/meminfo", meminfo(80)) }
    }

    @Test("S114 a file that accepts the trigger but is not a PSI file is not used")
    func ordinaryFile() {
      let root = TemporaryDirectory()
      root.write("proc/meminfo", meminfo(500))
      root.write("proc/pressure/memory", "")
      let path = root.path
      let (watched, backend) = watch(root) { MemoryPressureBackend.triggers(of: MemoryGauge(root: path)) }
      #expect(!backend.isNotified)
      watched.expects(MemoryPressureEvent.warning) { root.write("proc/meminfo", meminfo(80)) }
    }

    @Test("S114, trap 19: if the first reading fails, later ones are made, and the triggers are opened again")
    func failedReading() throws {
      let root = TemporaryDirectory()
      // It can be opened, and has no numbers.
      root.write("proc/meminfo", "")
      let critical = try Connection()
      let openings = Tally()
      let (watched, backend) = watch(root) {
        openings.add() == 1 ? nil : [PressureTrigger(descriptor: critical.takeReceiver(), level: .critical)]
      }
      #expect(!backend.isNotified)
      // The triggers report no stall, so the level ends at once.
      root.write("proc/meminfo", meminfo(80))
      let both: MemoryPressureEvent = [.warning, .normal]
      #expect(watched.reports.comes(both.rawValue))
      #expect(backend.isNotified)
      critical.announce()
      #expect(watched.reports.comes(MemoryPressureEvent.critical.rawValue))
      #expect(openings.value == 2)
    }

    @Test("S114, trap 19: when a trigger breaks while nothing can be read, later readings are made")
    func brokenTriggerWithoutReading() throws {
      let warning = try Connection()
      let root = TemporaryDirectory()
      root.write("proc/meminfo", "")
      let openings = Tally()
      let (watched, backend) = watch(root) {
        openings.add() == 1 ? [PressureTrigger(descriptor: warning.takeReceiver(), level: .warning)] : nil
      }
      #expect(backend.isNotified)
      warning.breakOff()
      #expect(awaitValue { !backend.isNotified })
      watched.expects(MemoryPressureEvent.warning) { root.write("proc/meminfo", meminfo(80)) }
    }

    @Test("S114 the kernel's notices are used if it grants them", .enabled(if: grantsTriggers()))
    func kernelTriggers() throws {
      let backend = try MemoryPressureBackend.make(mask: .all).get()
      let watched = WatchedSource(DispatchSource(memoryPressure: backend, .all, nil))
      #expect(backend.isNotified)
      watched.cancel()
      #expect(!backend.isNotified)
    }

    /// Whether the kernel accepts a trigger, without the engine.
    private static func grantsTriggers() -> Bool {
      let file = open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC)
      defer { close(file) }
      let condition = "full 200000 2000000"
      return file >= 0 && write(file, condition, condition.utf8.count + 1) > 0
    }

    @Test("S114 stalls are reported as they come, and their end after a while without any")
    func notices() throws {
      let (warning, critical) = (try Connection(), try Connection())
      let (watched, backend) = watch(TemporaryDirectory()) {
        [
          PressureTrigger(descriptor: warning.takeReceiver(), level: .warning),
          PressureTrigger(descriptor: critical.takeReceiver(), level: .critical),
        ]
      }
      #expect(backend.isNotified)
      watched.expects(MemoryPressureEvent.warning) { warning.announce() }
      watched.expects(MemoryPressureEvent.critical) { critical.announce() }
      warning.calm()
      critical.calm()
      #expect(watched.reports.comes(MemoryPressureEvent.normal.rawValue))
      // Armed again.
      watched.expects(MemoryPressureEvent.warning) { warning.announce() }
    }

    @Test("S114 when a trigger breaks, memory is read instead")
    func brokenTrigger() throws {
      let (warning, critical) = (try Connection(), try Connection())
      let root = TemporaryDirectory()
      root.write("proc/meminfo", meminfo(80))
      let (watched, backend) = watch(root) {
        [
          PressureTrigger(descriptor: warning.takeReceiver(), level: .warning),
          PressureTrigger(descriptor: critical.takeReceiver(), level: .critical),
        ]
      }
      #expect(backend.isNotified)
      watched.expects(MemoryPressureEvent.warning) { critical.breakOff() }
      #expect(!backend.isNotified)
    }

    @Test(
      "S103 mask and data of a memory pressure source have their types, and a source on this machine can be made and cancelled"
    )
    func members() {
      let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical])
      let mask: MemoryPressureEvent = source.mask
      #expect(mask == [.warning, .critical])
      let registered = DispatchSemaphore(value: 0)
      let cancelled = DispatchSemaphore(value: 0)
      source.setRegistrationHandler { registered.signal() }
      source.setCancelHandler { cancelled.signal() }
      source.activate()
      #expect(comes(registered))
      source.cancel()
      #expect(comes(cancelled))
      #expect((source.mask as MemoryPressureEvent).isEmpty)
      #expect((source.data as MemoryPressureEvent).isEmpty)
    }

    @Test("S95 undefined levels are refused, with the reason")
    func refusals() {
      func reason(_ mask: MemoryPressureEvent) -> String {
        switch DispatchSource.makeMemoryPressure(mask, nil) {
        case .success: "made"
        case .failure(let refusal): refusal.message
        }
      }
      #expect(reason([]).contains("empty event mask"))
      #expect(reason(.init(rawValue: 0x1a)).contains("0x18 mean nothing"))
      #expect(MemoryPressureEvent.observable == .all)
    }
  }
}

/// A connection that stands in for a trigger: urgent data makes a descriptor ready in the same way as
/// the kernel's notices of stalls.
private final class Connection: Sendable {
  private let sender: Int32
  private let receiver: Int32
  /// The source closes the original.
  private let duplicate: Int32

  init() throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let sender = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    // SAFETY: an internet address is a socket address, of the size given; alive in the closure.
    let failures = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        [
          bind(listener, address, size), listen(listener, 1), getsockname(listener, address, &size),
          connect(sender, address, size),
        ]
      }
    }
    try #require(failures == [0, 0, 0, 0])
    self.sender = sender
    receiver = accept(listener, nil, nil)
    try #require(receiver >= 0)
    duplicate = dup(receiver)
  }

  func takeReceiver() -> Int32 { receiver }

  /// Makes the descriptor ready.
  func announce() { #expect(send(sender, "!", 1, Int32(MSG_OOB)) == 1) }

  /// Makes it quiet again.
  func calm() {
    var byte = UInt8(0)
    #expect(recv(duplicate, &byte, 1, Int32(MSG_OOB)) == 1)
  }

  /// Makes it report an error.
  func breakOff() {
    var atOnce = linger(l_onoff: 1, l_linger: 0)
    setsockopt(sender, SOL_SOCKET, SO_LINGER, &atOnce, socklen_t(MemoryLayout<linger>.size))
    shutdown(sender, Int32(SHUT_WR))
    var nobody = sockaddr()
    nobody.sa_family = sa_family_t(AF_UNSPEC)
    // Connecting to AF_UNSPEC resets the connection.
    connect(sender, &nobody, socklen_t(MemoryLayout<sockaddr>.size))
  }

  deinit {
    close(sender)
    close(duplicate)
  }
}
