/// Reading the shards from the system. The kernel shows one directory for each processor and node:
///
/// - `cpu/cpuN/cache/indexK/level` and `shared_cpu_list`: the caches of a processor, and who shares each of them;
/// - `node/online` and `node/nodeN/cpulist`: the NUMA nodes, and the processors of each.
///
/// A file that is missing or malformed counts as unknown: containers and virtual machines hide or invent some of them.
extension Topology {
  /// Caches per processor, and nodes, that are looked at.
  private static let mostCaches = 16
  private static let mostNodes = 1024
  /// The longest text of a file that is read: 8,192 bytes name each second of 2,000 processors.
  private static let longestList = 8192
  /// Shards with fewer processors than this on average are merged.
  private static let leastAverage = 4

  /// The shards of this process, or those that `CONCOURSE_TOPOLOGY` pretends; nil for one shard, of up to eight
  /// processors, for which no file is read.
  static func ofProcess() -> Topology? {
    if let text = Process.environment("CONCOURSE_TOPOLOGY") {
      if let pretended = pretended(text) { return pretended }
      Trap.warn(
        "CONCOURSE_TOPOLOGY=\(text) is neither CACHESxPROCESSORS nor NODESxCACHESxPROCESSORS, with at most "
          + "\(mostShards) caches of at most \(mostInShard) processors; ignored")
    }
    if Processor.affinityCount <= mostInShard { return nil }
    return read(allowed: Processor.allowed, root: "/sys/devices/system")
  }

  /// The shards of some processors:
  ///
  /// 1. Up to eight processors are one shard, and no file is read.
  /// 2. Processors of one node that share a cache of the highest level are a group. Those whose cache is unknown are
  ///    one group in each node.
  /// 3. A group of more than eight is cut into as few parts as possible, as equal as possible. If its list is two
  ///    ranges of equal length, such as "0-7,64-71", the second has the hyperthreads of the first, and both of a core are in
  ///    one part.
  /// 4. If the shards have fewer than four processors on average, as in a virtual machine that shows a cache for each
  ///    processor, neighbours of the same node are merged, up to eight processors.
  /// 5. If there are more than 64, neighbours are merged further, of the same node as far as possible.
  ///
  /// They are numbered by node, then by their first processors.
  /// - Parameters:
  ///   - allowed: the numbers of the processors. Those that no system has are left out.
  ///   - root: the directory of `cpu` and `node`: "/sys/devices/system".
  static func read(allowed: [Int], root: String) -> Topology {
    let allowed = Set(allowed.filter { (0..<mostProcessors).contains($0) }).sorted()
    guard allowed.count > mostInShard else { return Topology(processors: allowed.count) }
    let groups = caches(of: allowed, nodes: nodes(root: root), root: root)
    var shards = groups.flatMap { group in
      packed(group.cores, upTo: mostInShard).map { Shard(processors: $0.sorted(), node: group.node) }
    }
    if allowed.count < leastAverage * shards.count { shards = merged(shards, upTo: mostInShard) }
    for withinNodes in [true, false] {
      var limit = mostInShard
      while shards.count > mostShards && limit < mostProcessors {
        limit *= 2
        shards = merged(shards, upTo: limit, withinNodes: withinNodes)
      }
    }
    return Topology(inOrder(shards))
  }

  /// The numbers in a list of the kernel such as "0-3,8,10-11"; nil if it is malformed, does not ascend, names no
  /// processor, or names one that no system has.
  static func list(_ text: [UInt8]) -> [ClosedRange<Int>]? {
    var ranges: [ClosedRange<Int>] = []
    let line = text.last == UInt8(ascii: "\n") ? text.dropLast() : text[...]
    for item in line.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
      let ends = item.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
      guard let first = decimal(ends[0]), let last = decimal(ends[ends.count - 1]),
        first <= last, last < mostProcessors, first > ranges.last?.upperBound ?? -1
      else { return nil }
      ranges.append(first...last)
    }
    return ranges
  }

  // MARK: Groups

  /// Processors of one node and one cache, as cores: the processors that stay together.
  private struct Group {
    var cores: [[Int]]
    var node: Int
  }

  /// The groups of the processors, which are sorted.
  private static func caches(of allowed: [Int], nodes: [Int], root: String) -> [Group] {
    // Whether a processor is allowed, and in no group yet.
    var isLeft = [Bool](repeating: false, count: mostProcessors)
    for processor in allowed { isLeft[processor] = true }
    var groups: [Group] = []
    var unknown: [[Int]] = []
    for processor in allowed where isLeft[processor] {
      if let ranges = sharers(of: processor, root: root) {
        groups += divided(cores(of: ranges, where: { isLeft[$0] }), by: nodes)
        for number in ranges.joined() { isLeft[number] = false }
      } else {
        unknown.append([processor])
        isLeft[processor] = false
      }
    }
    return groups + divided(unknown, by: nodes)
  }

  /// The processors with which this one shares its cache of the highest level, itself among them; nil if that is
  /// unknown.
  private static func sharers(of processor: Int, root: String) -> [ClosedRange<Int>]? {
    let directory = "\(root)/cpu/cpu\(processor)/cache/index"
    var highest: (level: Int, index: Int)?
    for index in 0..<mostCaches {
      guard let text = CgroupTree.contents(of: Array("\(directory)\(index)/level".utf8)) else { break }
      guard let level = decimal(text) else { continue }
      if highest.map({ level > $0.level }) ?? true { highest = (level, index) }
    }
    guard let highest, let ranges = listed(in: "\(directory)\(highest.index)/shared_cpu_list"),
      ranges.contains(where: { $0.contains(processor) })
    else { return nil }
    return ranges
  }

  /// The processors of the ranges for which `isWanted` holds, by cores.
  private static func cores(of ranges: [ClosedRange<Int>], where isWanted: (Int) -> Bool) -> [[Int]] {
    let areSiblings = ranges.count == 2 && ranges[0].count == ranges[1].count
    let cores = areSiblings ? zip(ranges[0], ranges[1]).map { [$0, $1] } : ranges.joined().map { [$0] }
    return cores.map { $0.filter(isWanted) }.filter { !$0.isEmpty }
  }

  /// One group for each node. A core is where its first processor is.
  private static func divided(_ cores: [[Int]], by nodes: [Int]) -> [Group] {
    var groups: [Group] = []
    for core in cores {
      let node = nodes[core[0]]
      if let index = groups.firstIndex(where: { $0.node == node }) {
        groups[index].cores.append(core)
      } else {
        groups.append(Group(cores: [core], node: node))
      }
    }
    return groups
  }

  /// The node of each processor. Without a list of the nodes, those before the first number that is missing count.
  private static func nodes(root: String) -> [Int] {
    var nodes = [Int](repeating: 0, count: mostProcessors)
    let online = listed(in: "\(root)/node/online")
    for node in (online ?? [0...mostNodes - 1]).joined().prefix(mostNodes) {
      // A node may have memory only.
      if let ranges = listed(in: "\(root)/node/node\(node)/cpulist") {
        for processor in ranges.joined() { nodes[processor] = node }
      } else if online == nil {
        break
      }
    }
    return nodes
  }

  private static func listed(in path: String) -> [ClosedRange<Int>]? {
    CgroupTree.contents(of: Array(path.utf8), upTo: longestList).flatMap(list)
  }

  // MARK: Sizes

  /// Joins neighbouring units into as few parts of at most `limit` processors as possible, as equal as possible. A unit
  /// is not divided, even if it is larger.
  private static func packed(_ units: [[Int]], upTo limit: Int) -> [[Int]] {
    var parts: [[Int]] = []
    var rest = units.reduce(0) { $0 + $1.count }
    var wanted = 0
    for unit in units {
      if let last = parts.last, last.count < wanted, last.count + unit.count <= limit {
        parts[parts.count - 1] += unit
      } else {
        let partsLeft = (rest + limit - 1) / limit
        wanted = (rest + partsLeft - 1) / partsLeft
        parts.append(unit)
      }
      rest -= unit.count
    }
    return parts
  }

  /// Merges neighbours to at most `limit` processors.
  private static func merged(_ shards: [Shard], upTo limit: Int, withinNodes: Bool = true) -> [Shard] {
    let shards = inOrder(shards)
    var result: [Shard] = []
    var rest = shards[...]
    while let first = rest.first {
      let node = withinNodes ? rest.prefix { $0.node == first.node } : rest
      rest = rest.dropFirst(node.count)
      result += packed(node.map(\.processors), upTo: limit).map { part in
        // A part of several nodes counts to that of its first processor.
        Shard(processors: part.sorted(), node: node.first { $0.processors[0] == part[0] }?.node ?? first.node)
      }
    }
    return result
  }

  private static func inOrder(_ shards: [Shard]) -> [Shard] {
    shards.sorted { ($0.node, $0.processors[0]) < ($1.node, $1.processors[0]) }
  }
}
