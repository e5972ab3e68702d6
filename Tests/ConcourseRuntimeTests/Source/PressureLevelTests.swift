import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

@Suite("PressureLevel")
struct PressureLevelTests {
  private let second: UInt64 = 1_000_000_000

  @Test("With notices, a level lasts until there have been none for a while")
  func notices() {
    var level = PressureLevel()
    #expect(level.update(at: 0) == nil)
    #expect(level.stalled(.warning, at: 10 * second) == .warning)
    #expect(level.stalled(.warning, at: 12 * second) == nil)
    #expect(level.update(at: 16 * second) == nil)
    #expect(level.update(at: 17 * second) == .normal)
    #expect(level.update(at: 18 * second) == nil)
  }

  @Test("A critical level falls back to a warning while warnings still come")
  func stepDown() {
    var level = PressureLevel()
    #expect(level.stalled(.critical, at: 10 * second) == .critical)
    #expect(level.stalled(.warning, at: 13 * second) == nil)
    #expect(level.update(at: 14 * second) == nil)
    #expect(level.update(at: 15 * second) == .warning)
    #expect(level.stalled(.critical, at: 16 * second) == .critical)
    #expect(level.update(at: 21 * second) == .normal)
  }

  @Test("With readings, a level ends only when clearly more is left than when it began")
  func readings() {
    var level = PressureLevel()
    let script: [(available: Double, entered: PressureLevel.Level?)] = [
      (0.5, nil), (0.11, nil), (0.09, .warning), (0.11, nil), (0.06, nil), (0.04, .critical), (0.07, nil),
      (0.09, .warning), (0.14, nil), (0.15, .normal), (0.12, nil), (0.01, .critical), (1, .normal),
    ]
    for (step, line) in script.enumerated() {
      let entered = level.read(.init(available: line.available), at: UInt64(step) * second)
      #expect(entered == line.entered, "step \(step)")
    }
  }

  @Test("Counts of the control group raise the level when they grow, whatever they were at first")
  func counts() {
    var level = PressureLevel()
    #expect(level.read(.init(available: 0.5, reclaims: 7, shortages: 3), at: 0) == nil)
    #expect(level.read(.init(available: 0.5, reclaims: 8, shortages: 3), at: second) == .warning)
    #expect(level.read(.init(available: 0.5, reclaims: 8, shortages: 4), at: 2 * second) == .critical)
    #expect(level.read(.init(available: 0.5, reclaims: 9, shortages: 4), at: 5 * second) == nil)
    #expect(level.read(.init(available: 0.5, reclaims: 9, shortages: 4), at: 7 * second) == .warning)
    #expect(level.read(.init(available: 0.5, reclaims: 9, shortages: 4), at: 10 * second) == .normal)
  }
}

@Suite("MemoryGauge")
struct MemoryGaugeTests {
  private let meminfo = "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\nBuffers: 2 kB\n"

  @Test("The machine's memory")
  func machine() {
    let root = TemporaryDirectory()
    #expect(MemoryGauge(root: root.path).read() == nil)
    root.write("proc/meminfo", meminfo)
    #expect(MemoryGauge(root: root.path).read() == .init(available: 0.4))
    #expect(MemoryGauge(root: root.path).groupPressureFile == nil)
    root.write("proc/meminfo", "MemTotal: 0 kB\nMemAvailable: none\n")
    #expect(MemoryGauge(root: root.path).read() == nil)
  }

  @Test("A control group of version 2: the tightest level counts, and its events")
  func versionTwo() {
    let root = TemporaryDirectory()
    let gauge = MemoryGauge(root: root.path)
    root.write("proc/meminfo", meminfo)
    root.write("proc/self/cgroup", "0::/pod/app\n")
    root.write(
      "proc/self/mountinfo", "29 25 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n")
    root.write("sys/fs/cgroup/pod/app/memory.max", "max\n")
    #expect(gauge.read() == .init(available: 0.4))
    root.write("sys/fs/cgroup/pod/memory.max", "100000\n")
    root.write("sys/fs/cgroup/pod/memory.current", "95000\n")
    root.write("sys/fs/cgroup/pod/memory.stat", "anon 5\ninactive_file 3000\nactive_file 4000\n")
    root.write("sys/fs/cgroup/pod/app/memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\n")
    #expect(gauge.read() == .init(available: 0.1, reclaims: 5, shortages: 4))
    #expect(gauge.groupPressureFile == root.path + "/sys/fs/cgroup/pod/app/memory.pressure")
    // Over its limit, for the moment.
    root.write("sys/fs/cgroup/pod/memory.current", "195000\n")
    #expect(gauge.read()?.available == 0)
    // A limit above the machine's memory does not count.
    root.write("sys/fs/cgroup/pod/memory.max", "2000000\n")
    #expect(gauge.read()?.available == 0.4)
  }

  @Test("A control group of version 1")
  func versionOne() {
    let root = TemporaryDirectory()
    let gauge = MemoryGauge(root: root.path)
    root.write("proc/meminfo", meminfo)
    root.write("proc/self/cgroup", "5:cpu:/other\n4:memory:/app\n0::/app\n")
    root.write(
      "proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")
    root.write("sys/fs/cgroup/memory/app/memory.limit_in_bytes", "100000\n")
    root.write("sys/fs/cgroup/memory/app/memory.usage_in_bytes", "90000\n")
    root.write("sys/fs/cgroup/memory/app/memory.stat", "inactive_file 7\ntotal_inactive_file 10000\n")
    root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "123456789\n")
    #expect(gauge.read() == .init(available: 0.2))
    #expect(gauge.groupPressureFile == nil)
  }
}
