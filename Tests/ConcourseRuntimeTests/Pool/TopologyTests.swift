import Glibc
import Testing

@testable import ConcourseRuntime

@Suite("Topology")
struct TopologyTests {
  // MARK: Pretended

  @Test(
    "a text pretends caches, or nodes of caches",
    arguments: [
      ("1x1", [1], [0]), ("1x2", [2], [0]), ("4x8", [8, 8, 8, 8], [0, 0, 0, 0]),
      ("2x2x3", [3, 3, 3, 3], [0, 0, 1, 1]), ("3x1x4", [4, 4, 4], [0, 1, 2]),
    ])
  func pretended(text: String, sizes: [Int], nodes: [Int]) throws {
    let topology = try #require(Topology.pretended(text))
    #expect(topology.sizes == sizes)
    #expect(topology.nodes == nodes)
    #expect(topology.shardCount == sizes.count)
    #expect(topology.isPretended)
    #expect(
      (0..<sizes.reduce(0, +)).map(topology.shard(of:))
        == sizes.indices.flatMap { repeatElement($0, count: sizes[$0]) })
  }

  @Test("at most 64 caches, at most 8 processors in each")
  func pretendedLimits() {
    #expect(Topology.pretended("64x8")?.shardCount == 64)
    #expect(Topology.pretended("64x1x8")?.nodes == Array(0..<64))
    #expect(Topology.pretended("8x8x1")?.sizes == Array(repeating: 1, count: 64))
    for text in ["65x1", "1x9", "9x8x1", "2x33x8", "64x64x8", "1x64x9"] {
      #expect(Topology.pretended(text) == nil)
    }
  }

  @Test(
    "other texts pretend nothing",
    arguments: [
      "", "x", "4", "4x", "x8", "4x8x", "1x2x3x4", "0x8", "4x0", "0x4x8", "+4x8", "-4x8", "4x-8", "4x8 ",
      " 4x8", "4X8",
      "4,8", "axb", "4x8\0", "\0", "0004x8", "99999999999999999999x1", "1x9223372036854775808", "４x８",
      "4x8\n",
      String(repeating: "1x", count: 5_000), String(repeating: "9", count: 5_000) + "x8",
    ])
  func notPretended(text: String) { #expect(Topology.pretended(text) == nil) }

  // MARK: One shard

  @Test("up to eight processors are one shard, and no file is read", arguments: 0...8)
  func few(count: Int) {
    // The files would say two caches.
    let system = FakeSystem()
    system.addCache(0..<4)
    system.addCache(4..<8)
    let topology = system.read(0..<count)
    #expect(topology.sizes == [max(count, 1)])
    #expect(topology.nodes == [0])
    #expect(!topology.isPretended)
    for processor in [.min, -1, 0, 3, 7, 8, .max] { #expect(topology.shard(of: processor) == 0) }
    #expect(topology.neighbours(of: 0) == [])
  }

  // MARK: Caches

  @Test("each cache of up to eight processors is a shard")
  func caches() {
    let system = FakeSystem()
    system.addCache(0..<8)
    system.addCache(8..<14)
    system.addCache(14..<16)
    let topology = system.read(0..<16)
    #expect(topology.sizes == [8, 6, 2])
    #expect(topology.nodes == [0, 0, 0])
    #expect((0..<16).map(topology.shard(of:)) == shards(8, 6, 2))
  }

  @Test("the highest level counts, wherever it stands")
  func highestLevel() {
    let system = FakeSystem()
    for processor in 0..<16 {
      system.write("cpu/cpu\(processor)/cache/index0/level", "3\n")
      system.write("cpu/cpu\(processor)/cache/index0/shared_cpu_list", processor < 8 ? "0-7\n" : "8-15\n")
      system.write("cpu/cpu\(processor)/cache/index1/level", "1\n")
      system.write("cpu/cpu\(processor)/cache/index1/shared_cpu_list", "\(processor)\n")
      system.write("cpu/cpu\(processor)/cache/index2/level", "2\n")
      system.write(
        "cpu/cpu\(processor)/cache/index2/shared_cpu_list", "\(processor / 4 * 4)-\(processor / 4 * 4 + 3)\n")
    }
    #expect(system.read(0..<16).sizes == [8, 8])
  }

  @Test("only the first processor of a group is looked up")
  func oneLookPerGroup() {
    let system = FakeSystem()
    system.addCache(0..<8, describedBy: [0])
    system.addCache(8..<16, describedBy: [8])
    let topology = system.read(0..<16)
    #expect(topology.sizes == [8, 8])
    #expect((0..<16).map(topology.shard(of:)) == shards(8, 8))
  }

  @Test("only the processors of the mask are counted")
  func mask() {
    let system = FakeSystem()
    for first in [0, 8, 16, 24] { system.addCache(first..<first + 8) }
    let topology = system.read([1, 3, 5, 7, 8, 9, 10, 11, 12, 31, 30, 29, 28])
    #expect(topology.sizes == [4, 5, 4])
    #expect([7, 8, 31].map(topology.shard(of:)) == [0, 1, 2])
    // The others are dealt out by their numbers.
    #expect(
      [0, 2, 16, 17, 18, 1 << 40, .max].map(topology.shard(of:)) == [
        0, 2, 1, 2, 0, (1 << 40) % 3, Int.max % 3,
      ])
    for processor in [.min, -1, -9, 5_000] { #expect((0..<3).contains(topology.shard(of: processor))) }
  }

  @Test("the mask's numbers may be in any order, twice, or absurd")
  func absurdMask() {
    let system = FakeSystem()
    system.addCache(0..<8)
    system.addCache(8..<16)
    let topology = system.read(Array((0..<16).reversed()) + [3, 3, -1, .min, .max, 8192, 1 << 40])
    #expect(topology.sizes == [8, 8])
    #expect(system.read([-1, .max]).sizes == [1])
  }

  // MARK: Cutting

  @Test(
    "a cache of more than eight is cut into equal parts",
    arguments: [
      (9, [5, 4]), (12, [6, 6]), (16, [8, 8]), (20, [7, 7, 6]), (64, Array(repeating: 8, count: 8)),
    ])
  func cut(count: Int, sizes: [Int]) {
    let system = FakeSystem()
    system.addCache(0..<count)
    let topology = system.read(0..<count)
    #expect(topology.sizes == sizes)
    #expect((0..<count).map(topology.shard(of:)) == shards(sizes))
  }

  @Test("both hyperthreads of a core are in one shard")
  func hyperthreads() {
    let system = FakeSystem()
    system.addCache(Array(0..<8) + Array(64..<72), list: "0-7,64-71\n")
    let topology = system.read(Array(0..<8) + Array(64..<72))
    #expect(topology.sizes == [8, 8])
    #expect((0..<8).map(topology.shard(of:)) == [0, 0, 0, 0, 1, 1, 1, 1])
    #expect((64..<72).map(topology.shard(of:)) == [0, 0, 0, 0, 1, 1, 1, 1])
  }

  @Test(
    "hyperthreads stay together in parts of uneven size, and under a mask", arguments: [5, 6, 7, 9, 11, 13])
  func oddHyperthreads(cores: Int) {
    let system = FakeSystem()
    let all = Array(0..<cores) + Array(100..<100 + cores)
    system.addCache(all, list: "0-\(cores - 1),100-\(100 + cores - 1)\n")
    for allowed in [all, all.filter { $0 != 2 && $0 != 103 }] where allowed.count > 8 {
      let topology = system.read(allowed)
      #expect(topology.sizes.allSatisfy { 3...8 ~= $0 })
      #expect(topology.sizes.reduce(0, +) == allowed.count)
      for core in 0..<cores where allowed.contains(core) && allowed.contains(core + 100) {
        #expect(topology.shard(of: core) == topology.shard(of: core + 100))
      }
    }
  }

  // MARK: Merging

  @Test("a cache for each processor, or for two or three, as virtual machines have it", arguments: 1...3)
  func tiny(size: Int) {
    let system = FakeSystem()
    for first in stride(from: 0, to: 24, by: size) { system.addCache(first..<first + size) }
    let topology = system.read(0..<24)
    #expect(topology.sizes == (size == 3 ? [6, 6, 6, 6] : [8, 8, 8]))
    #expect((0..<24).map(topology.shard(of:)) == shards(topology.sizes))
  }

  @Test("small caches stay as they are if they have four processors on average")
  func small() {
    let system = FakeSystem()
    for first in stride(from: 0, to: 16, by: 4) { system.addCache(first..<first + 4) }
    #expect(system.read(0..<16).sizes == [4, 4, 4, 4])
  }

  @Test("processors of different nodes are not merged")
  func mergeWithinNodes() {
    let system = FakeSystem()
    for processor in 0..<20 { system.addCache(processor..<processor + 1) }
    system.addNodes(["0-2", "3-19"])
    let topology = system.read(0..<20)
    #expect(topology.sizes == [3, 6, 6, 5])
    #expect(topology.nodes == [0, 1, 1, 1])
  }

  @Test("a machine of more than 512 processors has 64 shards at most, larger ones")
  func manyProcessors() {
    let system = FakeSystem()
    for first in stride(from: 0, to: 1024, by: 16) {
      system.addCache(first..<first + 16, describedBy: [first])
    }
    system.addNodes(["0-511", "512-1023"])
    let topology = system.read(0..<1024)
    #expect(topology.sizes == Array(repeating: 16, count: 64))
    #expect(topology.nodes == Array(repeating: 0, count: 32) + Array(repeating: 1, count: 32))
    #expect((0..<1024).map(topology.shard(of:)) == (0..<1024).map { $0 / 16 })
    #expect(FakeSystem().read(0..<8192).sizes == Array(repeating: 128, count: 64))
  }

  @Test("more than 64 nodes")
  func manyNodes() {
    let system = FakeSystem()
    system.addNodes((0..<100).map { "\($0 * 2)-\($0 * 2 + 1)" })
    let topology = system.read(0..<200)
    #expect(topology.shardCount <= 64)
    #expect(topology.sizes.reduce(0, +) == 200)
    #expect(Set((0..<200).map(topology.shard(of:))) == Set(0..<topology.shardCount))
  }

  // MARK: Nodes

  @Test("shards are numbered by node; a cache of two nodes is divided")
  func nodes() {
    let system = FakeSystem()
    system.addCache(0..<8)
    system.addCache(8..<16)
    system.addCache(16..<24)
    // Every second processor of the last cache belongs to the other node.
    system.addNodes(["8-15,17,19,21,23", "0-7,16,18,20,22"])
    let topology = system.read(0..<24)
    #expect(topology.sizes == [8, 4, 8, 4])
    #expect(topology.nodes == [0, 0, 1, 1])
    #expect([8, 17, 0, 16].map(topology.shard(of:)) == [0, 1, 2, 3])
  }

  @Test("nodes may have gaps, or memory only")
  func nodesWithGaps() {
    let system = FakeSystem()
    system.write("node/online", "0,2-3,8\n")
    system.write("node/node0/cpulist", "0-7\n")
    system.write("node/node2/cpulist", "\n")
    system.write("node/node8/cpulist", "8-15\n")
    let topology = system.read(0..<16)
    #expect(topology.sizes == [8, 8])
    #expect(topology.nodes == [0, 8])
  }

  @Test("a list that names each second processor one by one is not too long")
  func longList() {
    let system = FakeSystem()
    let even = (0..<256).filter { $0 % 2 == 0 }
    system.addNodes([
      even.map(String.init).joined(separator: ","), even.map { "\($0 + 1)" }.joined(separator: ","),
    ])
    let topology = system.read(0..<256)
    #expect(topology.sizes == Array(repeating: 8, count: 32))
    #expect((0..<256).allSatisfy { topology.nodes[topology.shard(of: $0)] == $0 % 2 })
  }

  @Test("neighbours: the same node first, then by number, each shard beginning after itself")
  func neighbours() throws {
    let topology = try #require(Topology.pretended("2x3x8"))
    #expect(topology.neighbours(of: 0) == [1, 2, 3, 4, 5])
    #expect(topology.neighbours(of: 1) == [2, 0, 3, 4, 5])
    #expect(topology.neighbours(of: 3) == [4, 5, 0, 1, 2])
    #expect(topology.neighbours(of: 5) == [3, 4, 0, 1, 2])
  }

  // MARK: No files, bad files

  @Test(
    "without files: groups of at most eight by number",
    arguments: [(16, [8, 8]), (24, [8, 8, 8]), (12, [6, 6])])
  func noFiles(count: Int, sizes: [Int]) {
    let topology = Topology.read(allowed: Array(0..<count), root: "/nowhere/at/all")
    #expect(topology.sizes == sizes)
    #expect(topology.nodes == sizes.map { _ in 0 })
    #expect((0..<count).map(topology.shard(of:)) == shards(sizes))
  }

  private static let garbage = [
    "", "\n", "a", "a\n", "-", "-\n", ",", "0-", "-7", "5-2", "0-99999999999", "0-9223372036854775807",
    "0-99999999999999999999", "99999999999", "0-3,", ",0-3", "0-3,,5", "0-3-5", "0 - 3", "0-3 ", "+0-3",
    "0x0-3", "\0",
    "0-7\0", "0\0-7", "0-8192", "0-8191,0-8191", "4,3", "0-3,3-4", "8-15,0-7",
    String(repeating: "0,", count: 5_000) + "0",
    String(repeating: "7", count: 100_000), "\n\n", "0-3\n4-7\n", "\u{7f}\u{ff}",
  ]

  @Test("a list that is malformed counts as unknown", arguments: garbage)
  func badList(text: String) {
    #expect(Topology.list(Array(text.utf8)) == nil)
    let system = FakeSystem()
    system.addCache([0, 9], list: text)
    #expect(system.read(0..<16).sizes == [8, 8])
    system.addNodes([text, text])
    #expect(system.read(0..<16).nodes == [0, 0])
    system.write("node/online", text)
    #expect(system.read(0..<16).shardCount == 2)
  }

  @Test("a level that is malformed counts as absent", arguments: garbage)
  func badLevel(text: String) {
    let system = FakeSystem()
    system.addCache(0..<8, describedBy: [0])
    system.addCache(8..<16, describedBy: [8])
    for processor in [0, 8] {
      system.write("cpu/cpu\(processor)/cache/index1/level", text.allSatisfy(\.isNumber) ? "" : text)
      system.write("cpu/cpu\(processor)/cache/index1/shared_cpu_list", "\(processor)\n")
    }
    #expect(system.read(0..<16).sizes == [8, 8])
  }

  @Test("lists of the kernel")
  func lists() {
    #expect(Topology.list(Array("0-3,8,10-11\n".utf8)) == [0...3, 8...8, 10...11])
    #expect(Topology.list(Array("0".utf8)) == [0...0])
    #expect(Topology.list(Array("8191\n".utf8)) == [8191...8191])
    #expect(Topology.list(Array("0-8191\n".utf8)) == [0...8191])
  }

  @Test("lists that contradict one another")
  func contradictions() {
    let system = FakeSystem()
    // The list of processor 0 lacks it, and 8 claims what 1 has.
    system.write("cpu/cpu0/cache/index0/level", "3\n")
    system.write("cpu/cpu0/cache/index0/shared_cpu_list", "4-11\n")
    system.addCache(Array(1..<2), list: "1-7\n")
    system.addCache(Array(8..<12), list: "0-11\n")
    let topology = system.read(0..<12)
    #expect(topology.sizes.reduce(0, +) == 12)
    #expect(topology.sizes.allSatisfy { 1...8 ~= $0 })
    #expect(Set((0..<12).map(topology.shard(of:))) == Set(0..<topology.shardCount))
  }

  // MARK: Shares

  @Test(
    "a width is dealt out in proportion",
    arguments: [
      (.min, [1, 0, 0, 0]), (0, [1, 0, 0, 0]), (1, [1, 0, 0, 0]), (3, [3, 0, 0, 0]), (8, [8, 0, 0, 0]),
      (9, [5, 4, 0, 0]), (16, [8, 8, 0, 0]), (17, [6, 6, 5, 0]), (30, [8, 8, 7, 7]), (32, [8, 8, 8, 8]),
      (33, [9, 8, 8, 8]),
      (64, [16, 16, 16, 16]), (1 << 62, Array(repeating: 1 << 60, count: 4)),
    ])
  func shares(width: Int, expected: [Int]) throws {
    #expect(try #require(Topology.pretended("4x8")).shares(of: width) == expected)
  }

  @Test(
    "shares of unequal shards: the sum is the width, none is larger than its shard, and the fewest shards have any"
  )
  func unequalShares() {
    let system = FakeSystem()
    for (first, end) in [(0, 8), (8, 11), (11, 12), (12, 20), (20, 26)] { system.addCache(first..<end) }
    let topology = system.read(0..<26)
    #expect(topology.sizes == [8, 3, 1, 8, 6])
    #expect(topology.shares(of: 13) == [5, 2, 1, 5, 0])
    #expect(topology.shares(of: 26) == topology.sizes)
    #expect(topology.shares(of: 52) == topology.sizes.map { 2 * $0 })
    for width in 1...120 {
      let shares = topology.shares(of: width)
      #expect(shares.reduce(0, +) == width)
      if width <= 26 { #expect(zip(shares, topology.sizes).allSatisfy { $0 <= $1 }) }
      let used = shares.prefix { $0 > 0 }.count
      #expect(shares[used...].allSatisfy { $0 == 0 })
      #expect(used == 1 || topology.sizes.prefix(used - 1).reduce(0, +) < width)
    }
    #expect(topology.shares(of: .max).reduce(0, +) == .max)
    #expect(Topology(processors: 2).shares(of: .max) == [.max])
  }

  // MARK: The machine

  @Test("the processors of the mask")
  func allowed() {
    #expect(Processor.allowed.count == Processor.affinityCount)
    #expect(Processor.allowed == Set(Processor.allowed).sorted())
    #expect(Set(Processor.allowed).isSuperset(of: processors(of: 0)))
  }

  @Test("this machine's own files, and eight at a time, for every processor that it could have")
  func thisMachine() {
    let topology = Topology.read(allowed: Array(0..<512), root: "/sys/devices/system")
    #expect(topology.sizes.reduce(0, +) == 512)
    #expect(topology.shardCount <= 64)
    let own = Topology.ofProcess()
    #expect((own == nil) == (Processor.affinityCount <= 8) || own!.isPretended)
    #expect(own.map { $0.isPretended || $0.sizes.reduce(0, +) == Processor.affinityCount } ?? true)
  }

  @Test("the environment pretends a topology; a text that says none is named")
  func environment() async {
    await #expect(processExitsWith: .success) {
      setenv("CONCOURSE_TOPOLOGY", "2x4x8", 1)
      let topology = Topology.ofProcess()!
      precondition(topology.isPretended)
      precondition(topology.sizes == Array(repeating: 8, count: 8))
    }
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      setenv("CONCOURSE_TOPOLOGY", "4x9", 1)
      precondition(Topology.ofProcess()?.isPretended != true)
    }
    let output = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(output.contains("CONCOURSE_TOPOLOGY=4x9 is neither"))
    let unset = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      setenv("CONCOURSE_TOPOLOGY", "", 1)
      precondition(Topology.ofProcess()?.isPretended != true)
    }
    #expect(unset?.standardErrorContent == [])
  }

  /// The shards of ascending processors, by the sizes of the shards.
  private func shards(_ sizes: [Int]) -> [Int] {
    sizes.indices.flatMap { repeatElement($0, count: sizes[$0]) }
  }

  private func shards(_ sizes: Int...) -> [Int] { shards(sizes) }
}

/// A directory that stands in for `/sys/devices/system`, removed at the end of the test.
private final class FakeSystem {
  private let root: String
  private var made: [String] = []
  private var known: Set<String> = []

  init() {
    var template = Array("\(P_tmpdir)/concourse-topology-XXXXXX".utf8CString)
    // SAFETY: `mkdtemp` rewrites the six letters in place; the name is copied before the closure returns.
    root = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
  }

  deinit {
    for path in made.reversed() { remove(path) }
    remove(root)
  }

  func read(_ allowed: some Sequence<Int>) -> Topology { Topology.read(allowed: Array(allowed), root: root) }

  /// A cache of level 3 in the directories of its processors, or of some of them.
  func addCache(_ processors: Range<Int>, describedBy some: [Int]? = nil) {
    addCache(some ?? Array(processors), list: "\(processors.lowerBound)-\(processors.upperBound - 1)\n")
  }

  func addCache(_ processors: [Int], list: String) {
    for processor in processors {
      write("cpu/cpu\(processor)/cache/index0/level", "3\n")
      write("cpu/cpu\(processor)/cache/index0/shared_cpu_list", list)
    }
  }

  /// Nodes from 0 by the lists of their processors.
  func addNodes(_ lists: [String]) {
    for (node, list) in lists.enumerated() { write("node/node\(node)/cpulist", list + "\n") }
  }

  /// Writes a file, making the directories on the way.
  func write(_ path: String, _ text: String) {
    var place = root
    let names = path.split(separator: "/")
    for name in names.dropLast() {
      place += "/" + name
      if known.insert(place).inserted {
        if mkdir(place, 0o755) == 0 { made.append(place) } else { Issue.record("cannot make \(place)") }
      }
    }
    place += "/" + names.last!
    if known.insert(place).inserted { made.append(place) }
    guard let file = fopen(place, "we") else {
      Issue.record("cannot write \(place): error \(errno)")
      return
    }
    // Texts have NUL bytes too.
    let bytes = Array(text.utf8)
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
  }
}
