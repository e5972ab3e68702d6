import Glibc
import Testing

@testable import ConcourseRuntime

@Suite("CPUQuota")
struct CPUQuotaTests {
  // MARK: Width

  @Test(
    "the width is the quota rounded up, at least 1, at most the affinity",
    arguments: [
      (8, nil, 8), (8, 2.0, 2), (8, 1.5, 2), (8, 2.01, 3), (8, 0.1, 1), (2, 16.0, 2), (1, 0.5, 1),
      (4, 4.0, 4),
      (0, nil, 1), (0, 3.0, 1), (4, .infinity, 4), (4, .nan, 4), (4, -1e300, 1),
    ] as [(Int, Double?, Int)])
  func width(affinity: Int, quota: Double?, expected: Int) {
    #expect(CPUQuota.width(affinity: affinity, quota: quota) == expected)
  }

  @Test("while no file can be opened, the quota that is known still holds")
  func withoutDescriptors() async {
    await #expect(processExitsWith: .success) {
      let all = processors(of: 0)
      PoolSize.settleWidth()
      // As wide as a quota of one processor makes it.
      useOneProcessor()
      var limit = rlimit(rlim_cur: 256, rlim_max: 256)
      precondition(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
      var last: Int32 = -1
      while case let file = dup(2), file >= 0 { last = file }
      for thread in [getpid(), 0] { pin(thread, to: all) }
      _ = PoolSize.refreshWidth()
      precondition(PoolSize.width == 1)
      // More than one: another thread may open a file meanwhile.
      for file in (last - 8)...last { close(file) }
      _ = PoolSize.refreshWidth()
      let wide = CPUQuota.width(affinity: Processor.affinityCount, quota: CPUQuota.processors())
      precondition(PoolSize.width == wide)
    }
  }

  // MARK: Version 2

  @Test("version 2: quota divided by period")
  func versionTwo() {
    let tree = FakeTree(cgroup: "0::/app\n", mountinfo: versionTwoMount())
    tree.write("sys/fs/cgroup/app/cpu.max", "150000 100000\n")
    #expect(tree.processors == 1.5)
  }

  @Test("version 2: a change of the limit is seen, in both directions")
  func changes() {
    let tree = FakeTree(cgroup: "0::/app\n", mountinfo: versionTwoMount())
    tree.write("sys/fs/cgroup/app/cpu.max", "max 100000\n")
    #expect(tree.processors == nil)
    tree.write("sys/fs/cgroup/app/cpu.max", "50000 20000\n")
    #expect(tree.processors == 2.5)
    tree.write("sys/fs/cgroup/app/cpu.max", "max 20000\n")
    #expect(tree.processors == nil)
  }

  @Test("the tightest ancestor counts, whichever it is", arguments: [0, 1, 2])
  func ancestors(tightest: Int) {
    let tree = FakeTree(cgroup: "0::/pods/pod 7/main\n", mountinfo: versionTwoMount())
    let levels = ["pods", "pods/pod 7", "pods/pod 7/main"]
    for (index, level) in levels.enumerated() {
      let quota = index == tightest ? "70000" : "\(400_000 + index)"
      tree.write("sys/fs/cgroup/\(level)/cpu.max", "\(quota) 100000\n")
    }
    // A sibling's limit does not count.
    tree.write("sys/fs/cgroup/pods/other/cpu.max", "1000 100000\n")
    #expect(tree.processors == 0.7)
  }

  @Test("the directory that is mounted counts too")
  func mountPoint() {
    let tree = FakeTree(cgroup: "0::/\n", mountinfo: versionTwoMount())
    tree.write("sys/fs/cgroup/cpu.max", "300000 100000\n")
    #expect(tree.processors == 3)
  }

  @Test("levels without the controller, and unlimited ones, are passed over")
  func gaps() {
    let tree = FakeTree(cgroup: "0::/a/b/c/d\n", mountinfo: versionTwoMount())
    tree.write("sys/fs/cgroup/a/cpu.max", "200000 100000\n")
    tree.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
    #expect(tree.processors == 2)
  }

  @Test("a group that has been removed leaves its ancestors' limits")
  func removed() {
    let tree = FakeTree(cgroup: "0::/pods/gone (deleted)\n", mountinfo: versionTwoMount())
    tree.write("sys/fs/cgroup/pods/cpu.max", "200000 100000\n")
    #expect(tree.processors == 2)
  }

  // MARK: Version 1

  @Test("version 1: quota divided by period, the tree found by its controller")
  func versionOne() {
    let tree = FakeTree(
      cgroup: "12:cpuset:/wrong\n7:cpuacct,cpu:/app\n1:name=cpu:/wrong\n",
      mountinfo: """
        30 25 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
        31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:11 master:3 - cgroup cgroup rw,cpuacct,cpu

        """)
    tree.write("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "250000\n")
    tree.write("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n")
    tree.write("sys/fs/cgroup/cpuset/wrong/cpu.cfs_quota_us", "1000\n")
    tree.write("sys/fs/cgroup/cpuset/wrong/cpu.cfs_period_us", "100000\n")
    #expect(tree.processors == 2.5)
  }

  @Test("version 1: an ancestor's limit, and -1 for none")
  func versionOneAncestors() {
    let tree = FakeTree(cgroup: "4:cpu:/pod/main\n", mountinfo: versionOneMount())
    tree.writeVersionOne("pod/main", quota: "-1", period: "100000")
    #expect(tree.processors == nil)
    tree.writeVersionOne("pod", quota: "120000", period: "80000")
    #expect(tree.processors == 1.5)
    tree.writeVersionOne("pod/main", quota: "50000", period: "100000")
    #expect(tree.processors == 0.5)
  }

  @Test("version 1: a container sees its own group as the root of the mount")
  func mountRoot() {
    let tree = FakeTree(
      cgroup: "4:cpu:/docker/abc/worker\n", mountinfo: versionOneMount(root: "/docker/abc"))
    tree.writeVersionOne("", quota: "200000", period: "100000")
    tree.writeVersionOne("worker", quota: "400000", period: "100000")
    #expect(tree.processors == 2)
    tree.writeVersionOne("worker", quota: "100000", period: "100000")
    #expect(tree.processors == 1)
  }

  @Test("of several mounts of a tree the one that shows the most ancestors counts")
  func severalMounts() {
    let part = "40 25 0:40 /pod/main /part rw - cgroup cgroup rw,cpu\n"
    for mountinfo in [part + versionOneMount(), versionOneMount() + part] {
      let tree = FakeTree(cgroup: "4:cpu:/pod/main\n", mountinfo: mountinfo)
      tree.write("part/cpu.cfs_quota_us", "300000\n")
      tree.write("part/cpu.cfs_period_us", "100000\n")
      tree.writeVersionOne("pod/main", quota: "300000", period: "100000")
      tree.writeVersionOne("pod", quota: "100000", period: "100000")
      #expect(tree.processors == 1)
    }
  }

  // MARK: Both

  @Test("hybrid: the controller belongs to the version 1 tree that names it")
  func hybridOne() {
    for cgroup in ["0::/app\n4:cpu:/app\n", "4:cpu:/app\n0::/app\n"] {
      let tree = FakeTree(cgroup: cgroup, mountinfo: versionTwoMount("unified") + versionOneMount())
      tree.writeVersionOne("app", quota: "150000", period: "100000")
      tree.write("sys/fs/cgroup/unified/app/cpu.max", "50000 100000\n")
      #expect(tree.processors == 1.5)
    }
  }

  @Test("hybrid: without a version 1 tree that names it, it belongs to version 2")
  func hybridTwo() {
    let tree = FakeTree(
      cgroup: "5:memory,cpuset:/app\n1:name=systemd:/app\n0::/app\n",
      mountinfo: versionOneMount(controller: "cpuset") + versionTwoMount("unified"))
    tree.writeVersionOne("app", quota: "150000", period: "100000")
    tree.write("sys/fs/cgroup/unified/app/cpu.max", "50000 100000\n")
    #expect(tree.processors == 0.5)
  }

  // MARK: Namespaces

  @Test(
    "a group outside of the mount has none of its limits",
    arguments: [
      ("/", "/.."), ("/", "/../.."), ("/", "/../sibling"), ("/docker/abc", "/docker/abcd"),
      ("/docker/abc", "/"),
      ("/docker/abc", "/other"), ("/..", "/../.."), ("/../sibling", "/"), ("/../sibling", "/../other"),
    ])
  func outside(mountRoot: String, group: String) {
    let tree = FakeTree(cgroup: "0::\(group)\n", mountinfo: versionTwoMount(root: mountRoot))
    tree.write("sys/fs/cgroup/cpu.max", "100000 100000\n")
    tree.write("sys/fs/cpu.max", "100000 100000\n")
    #expect(tree.processors == nil)
  }

  @Test(
    "a mount from above the namespace shows an ancestor, whose limit holds",
    arguments: [("/..", "/"), ("/../..", "/app"), ("/../..", "/../sibling")])
  func above(mountRoot: String, group: String) {
    let tree = FakeTree(cgroup: "0::\(group)\n", mountinfo: versionTwoMount(root: mountRoot))
    tree.write("sys/fs/cgroup/cpu.max", "200000 100000\n")
    // The group of that name is the ancestor's child, not ours.
    tree.write("sys/fs/cgroup/app/cpu.max", "100000 100000\n")
    #expect(tree.processors == 2)
  }

  @Test("outside of the namespace, but below a mount from above it")
  func besideNamespace() {
    let tree = FakeTree(cgroup: "0::/../sibling\n", mountinfo: versionTwoMount(root: "/.."))
    tree.write("sys/fs/cgroup/sibling/cpu.max", "200000 100000\n")
    #expect(tree.processors == 2)
  }

  // MARK: Text

  @Test("octal escapes in mount point and root, an empty source; colons and backslashes in the group's path")
  func escapes() {
    let tree = FakeTree(
      cgroup: "0::/my pod/a:b\\c/d\n",
      mountinfo: "30 25 0:26 /my\\040pod /mnt/c\\011g\\134040 rw - cgroup2  rw\n")
    tree.write("mnt/c\tg\\040/a:b\\c/d/cpu.max", "200000 100000\n")
    #expect(tree.processors == 2)
  }

  @Test("lines longer than the buffer, and a last line without newline")
  func longLines() {
    let long = String(repeating: "x", count: 9_000)
    let group = (1...15).map { "level-\($0)-" + String(repeating: "y", count: 200) }
    let tree = FakeTree(
      cgroup: "9:\(long):/\n0::/" + group.joined(separator: "/"),
      mountinfo: "29 25 0:2 / /o rw - overlay overlay rw,lowerdir=\(long)\n" + versionTwoMount().dropLast())
    tree.write("sys/fs/cgroup/\(group[0])/\(group[1])/cpu.max", "200000 100000")
    #expect(tree.processors == 2)
  }

  @Test(
    "garbage is no limit",
    arguments: [
      "", "\n", "max\n", "100000\n", "100000 0\n", "0 100000\n", "-5 100000\n", "x y\n", "100000 100000 1\n",
      "99999999999999999999 1\n", "1e5 100000\n", String(repeating: "1", count: 5_000),
    ])
  func garbage(text: String) {
    let tree = FakeTree(cgroup: "0::/a/b\n", mountinfo: versionTwoMount())
    tree.write("sys/fs/cgroup/a/b/cpu.max", text)
    #expect(tree.processors == nil)
    // It does not hide the limits of other levels.
    tree.write("sys/fs/cgroup/a/cpu.max", "200000 100000\n")
    #expect(tree.processors == 2)
  }

  @Test(
    "garbage in the files of /proc is no limit",
    arguments: [
      ("", ""), ("\n\n", "\n\n"), ("0::/\n", ""), ("0:/\n", "a b\n"), ("::\n", "- - -\n"),
      ("0::/\n", "1 2 3 / /sys/fs/cgroup rw -\n"), ("0::/\n", "1 2 3 / /sys/fs/cgroup rw - cgroup2 x\n"),
      ("0::/\n", "1 2 3 / /sys/fs/cgroup rw cgroup2 x rw\n"),
      ("4:cpu:/\n", "1 2 3 / /sys/fs/cgroup rw - cgroup2 x rw\n"),
    ])
  func garbageInProc(cgroup: String, mountinfo: String) {
    let tree = FakeTree(cgroup: cgroup, mountinfo: mountinfo)
    tree.write("sys/fs/cgroup/cpu.max", "200000 100000\n")
    #expect(tree.processors == nil)
  }

  @Test("no control groups at all")
  func none() {
    #expect(FakeTree().processors == nil)
    #expect(FakeTree(cgroup: "0::/\n", mountinfo: nil).processors == nil)
    #expect(FakeTree(cgroup: nil, mountinfo: versionTwoMount()).processors == nil)
    #expect(FakeTree(cgroup: "0::/\n", mountinfo: "29 25 0:2 / / rw - ext4 disk rw\n").processors == nil)
    #expect(CPUQuota.processors(root: "/nowhere/at/all") == nil)
  }

  @Test("the thread's own files come before those of the main thread, which may have ended")
  func threadFiles() {
    let tree = FakeTree(cgroup: "0::/main\n", mountinfo: versionTwoMount())
    tree.write("sys/fs/cgroup/main/cpu.max", "200000 100000\n")
    tree.write("sys/fs/cgroup/thread/cpu.max", "300000 100000\n")
    #expect(tree.processors == 2)
    tree.write("proc/thread-self/cgroup", "0::/thread\n")
    tree.write("proc/thread-self/mountinfo", versionTwoMount())
    #expect(tree.processors == 3)
  }

  // MARK: The machine

  @Test("this machine's own files can be read again and again, and leave no descriptor open")
  func thisMachine() {
    let before = lowestFreeDescriptor()
    for _ in 0..<1_000 {
      if let processors = CPUQuota.processors() {
        #expect(processors > 0)
        #expect(processors.isFinite)
      }
    }
    #expect(CPUQuota.width(affinity: 4, quota: CPUQuota.processors()) >= 1)
    // Other tests run beside this one, so a few more may be open now. A thousand leaks would be seen.
    #expect(lowestFreeDescriptor() < before + 500)
  }

  private func lowestFreeDescriptor() -> Int32 {
    let descriptor = dup(STDERR_FILENO)
    close(descriptor)
    return descriptor
  }

  // MARK: Pieces

  private func versionTwoMount(_ name: String? = nil, root: String = "/") -> String {
    "29 25 0:25 \(root) /sys/fs/cgroup\(name.map { "/" + $0 } ?? "") rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
  }

  private func versionOneMount(root: String = "/", controller: String = "cpu") -> String {
    "33 25 0:31 \(root) /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,\(controller)\n"
  }
}

/// A directory that stands in for `/`, removed at the end of the test.
private final class FakeTree {
  private let root: String
  private var made: [String] = []

  init(cgroup: String? = nil, mountinfo: String? = nil) {
    var template = Array("\(P_tmpdir)/concourse-cpu-quota-XXXXXX".utf8CString)
    // SAFETY: `mkdtemp` rewrites the six letters in place; the name is copied before the closure returns.
    root = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
    if let cgroup { write("proc/self/cgroup", cgroup) }
    if let mountinfo { write("proc/self/mountinfo", mountinfo) }
  }

  deinit {
    for path in made.reversed() { remove(path) }
    remove(root)
  }

  var processors: Double? { CPUQuota.processors(root: root) }

  /// Writes a file, making the directories on the way.
  func write(_ path: String, _ text: String) {
    var place = root
    let names = path.split(separator: "/")
    for name in names.dropLast() {
      place += "/" + name
      if mkdir(place, 0o755) == 0 { made.append(place) } else { #expect(errno == EEXIST, "\(place)") }
    }
    place += "/" + names.last!
    if access(place, F_OK) != 0 { made.append(place) }
    guard let file = fopen(place, "we") else {
      Issue.record("cannot write \(place): error \(errno)")
      return
    }
    fputs(text, file)
    fclose(file)
  }

  func writeVersionOne(_ group: String, quota: String, period: String) {
    write("sys/fs/cgroup/cpu/\(group)/cpu.cfs_quota_us", quota + "\n")
    write("sys/fs/cgroup/cpu/\(group)/cpu.cfs_period_us", period + "\n")
  }
}
