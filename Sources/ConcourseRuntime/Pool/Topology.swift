/// Which processors share a last-level cache, as shards of at most eight processors.
///
/// Threads that write one cache line get slower with each processor that takes part, and slower still where the line
/// has to leave its cache. So the pool has one set of bands for each shard. Up to eight processors are one shard.
///
/// This file has the result. `Topology+System.swift` reads it from the system.
struct Topology: Sendable {
  /// The most processors of a shard, but on machines that would otherwise have more than `mostShards`.
  static let mostInShard = 8
  /// The most shards.
  static let mostShards = 64
  /// The processors that are told apart: those with numbers below this one.
  static let mostProcessors = 8192

  /// A group of processors, and the NUMA node that they belong to.
  struct Shard: Equatable {
    var processors: [Int]
    var node: Int
  }

  /// The number of allowed processors of each shard; at least one entry, each at least 1.
  let sizes: [Int]
  /// The NUMA node of each shard; 0 where the system does not say.
  let nodes: [Int]
  /// Whether `CONCOURSE_TOPOLOGY` pretends these shards. Threads then get shards in turn.
  let isPretended: Bool
  var pretendedProcessors: Int? { isPretended ? sizes.reduce(0, +) : nil }
  /// The shard by the processor's number, or `unknown`; empty if there is one shard.
  private let shardByProcessor: [UInt8]
  private static let unknown = UInt8.max

  /// One shard.
  init(processors: Int) {
    (sizes, nodes, isPretended, shardByProcessor) = ([max(processors, 1)], [0], false, [])
  }

  /// Shards of known processors: 1 to `mostShards`, none of them empty, each processor below `mostProcessors`.
  init(_ shards: [Shard], isPretended: Bool = false) {
    sizes = shards.map(\.processors.count)
    nodes = shards.map(\.node)
    self.isPretended = isPretended
    let highest = shards.lazy.flatMap(\.processors).max() ?? 0
    var table = [UInt8](repeating: Self.unknown, count: highest + 1)
    for (number, shard) in shards.enumerated() {
      for processor in shard.processors { table[processor] = UInt8(number) }
    }
    shardByProcessor = table
  }

  /// The shards that a text describes: "4x8" stands for 4 caches of 8 processors, "2x4x8" for 2 nodes of 4 such caches.
  /// - Returns: nil if the text has another form, a number is 0, a cache has more than eight processors, or there are
  ///   more than 64 caches.
  static func pretended(_ text: String) -> Topology? {
    let fields = text.utf8.split(separator: UInt8(ascii: "x"), omittingEmptySubsequences: false)
    guard fields.count == 2 || fields.count == 3 else { return nil }
    var numbers: [Int] = []
    for field in fields {
      // No field may exceed 64, so three digits are enough.
      guard field.count <= 3, let number = decimal(field), (1...mostShards).contains(number) else {
        return nil
      }
      numbers.append(number)
    }
    let (nodeCount, size) = (fields.count == 3 ? numbers[0] : 1, numbers[fields.count - 1])
    let caches = numbers[fields.count - 2]
    guard size <= mostInShard, nodeCount * caches <= mostShards else { return nil }
    let shards = (0..<nodeCount * caches).map {
      Shard(processors: Array($0 * size..<($0 + 1) * size), node: $0 / caches)
    }
    return Topology(shards, isPretended: true)
  }

  /// The number that decimal digits, and nothing else, make; nil if it is larger than any `Int`.
  static func decimal(_ digits: some Collection<UInt8>) -> Int? {
    guard !digits.isEmpty else { return nil }
    var number = 0
    for digit in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      let (product, isTooLarge) = number.multipliedReportingOverflow(by: 10)
      let (sum, overflows) = product.addingReportingOverflow(Int(digit - UInt8(ascii: "0")))
      if isTooLarge || overflows { return nil }
      number = sum
    }
    return number
  }

  /// The number of shards; at least 1.
  var shardCount: Int { sizes.count }

  /// The shard of a processor, 0 to `shardCount` - 1 for any number. Processors that were not allowed when the topology
  /// was read, such as one that has been added since, are dealt out by their numbers.
  func shard(of processor: Int) -> Int {
    guard shardCount > 1 else { return 0 }
    let number = UInt(bitPattern: processor)
    if number < UInt(shardByProcessor.count), shardByProcessor[processor] != Self.unknown {
      return Int(shardByProcessor[processor])
    }
    return Int(number % UInt(shardCount))
  }

  /// The other shards, the nearest first: those of the same node, then the rest. Both are in the order of their numbers
  /// and begin after `shard`, so that different shards do not all turn to the same one first.
  func neighbours(of shard: Int) -> [Int] {
    let others = (1..<shardCount).map { (shard + $0) % shardCount }
    return others.filter { nodes[$0] == nodes[shard] } + others.filter { nodes[$0] != nodes[shard] }
  }

  /// How many of `width` processors each shard has. The sum is `width`, or 1 if `width` is less.
  ///
  /// Only as many shards have any as it takes, the first ones: a quota of two processors is one shard, as on a machine
  /// with two. Among these the processors are dealt out one by one: first one each, then the next to the shard that is
  /// the least full with it, where (share + 1) / size is least, the first of equals. So no share exceeds its size as long
  /// as `width` does not exceed the sum of the sizes. Beyond it all begins anew, on top of the sizes, in all shards.
  func shares(of width: Int) -> [Int] {
    let width = max(width, 1)
    let (rounds, rest) = width.quotientAndRemainder(dividingBy: sizes.reduce(0, +))
    var (used, room) = (0, 0)
    while used < shardCount && (rounds > 0 || room < rest) {
      room += sizes[used]
      used += 1
    }
    // What is dealt out in the last round.
    var dealt = sizes.indices.map { $0 < min(rest, used) ? 1 : 0 }
    for _ in 0..<max(rest - used, 0) {
      var best = 0
      for shard in 1..<max(used, 1) where (dealt[shard] + 1) * sizes[best] < (dealt[best] + 1) * sizes[shard]
      {
        best = shard
      }
      dealt[best] += 1
    }
    return zip(sizes, dealt).map { size, dealt in rounds * size + dealt }
  }
}
