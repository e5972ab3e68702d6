/// The bands of the pool.
extension EngineReader {
  func bandName(_ band: UInt64) throws(EngineTypes.Missing) -> String {
    let name = band &+ (try types.offset("Band", "name"))
    guard let start = memory.word(name), let count = memory.word(name &+ 8), count < 64,
      let text = memory.bytes(at: start, count: Int(count))
    else { return "" }
    return String(decoding: text, as: UTF8.self)
  }

  /// A root queue, and what it belongs to.
  struct Root {
    let address: UInt64
    let level: Int
    let band: UInt64
    /// The global queue.
    let client: UInt64
  }

  /// The roots of all shards. The table has those of one shard after the other, and those of a shard by level; level 0
  /// stands for default once more.
  func roots() throws(EngineTypes.Missing) -> [Root] {
    var roots: [Root] = []
    for index in 0..<record.shards * 6 where index % 6 != 0 {
      guard let root = memory.word(record.roots &+ UInt64(index) * 8),
        let band = memory.word(root &+ (try types.offset("RootQueue", "band"))), object(band, isA: "Band"),
        let client = memory.word(root &+ (try types.offset("RootQueue", "client")))
      else { continue }
      roots.append(Root(address: root, level: index % 6, band: band, client: client))
    }
    return roots
  }

  /// The nodes that workers have taken from a root together with what they run.
  func batches(of root: Root) throws(EngineTypes.Missing) -> [[UInt64]] {
    // One shard has none.
    guard record.shards > 1 else { return [] }
    var batches: [[UInt64]] = []
    for worker in try workers(of: root.band) {
      guard let word = memory.word(worker &+ (try types.offset("WorkerRecord", "batch"))),
        word != 0, Int(word & 7) == root.level
      else { continue }
      var (nodes, node) = ([UInt64](), word & ~7)
      while node != 0 && nodes.count < 64 && links.take() {
        nodes.append(node)
        node = memory.word(node) ?? 0
      }
      batches.append(nodes)
    }
    return batches
  }

  private func workers(of band: UInt64) throws(EngineTypes.Missing) -> [UInt64] {
    var workers: [UInt64] = []
    // A process that runs may put a record back at the list's beginning meanwhile: it leads to the same ones again.
    var known: Set<UInt64> = []
    var worker = memory.word(band &+ (try types.offset("Band", "newestRecord"))) ?? 0
    for _ in 0..<100_000 where worker != 0 && links.take() {
      if known.insert(worker).inserted { workers.append(worker) }
      worker = memory.word(worker &+ (try types.offset("WorkerRecord", "older"))) ?? 0
    }
    return workers
  }

  /// Adds up the bands of each kind over the shards.
  mutating func readBands() throws(EngineTypes.Missing) {
    let roots = try roots()
    for kind in BandKind.allCases {
      var bands: [UInt64] = []
      var clients: [UInt64] = []
      for root in roots where BandKind(level: root.level) == kind {
        if !bands.contains(root.band) { bands.append(root.band) }
        if !clients.contains(root.client) { clients.append(root.client) }
      }
      guard let first = bands.first else { continue }
      var info = BandInfo(name: try bandName(first), activeLimit: snapshot.width)
      info.waiting = clients.reduce(0) { $0 + (snapshot.queues[$1]?.items ?? 0) }
      var isHeldBack = true
      for band in bands {
        info.counts.add(BandWord(bits: memory.word(band &+ (try types.offset("Band", "counters"))) ?? 0))
        info.activeLimit += memory.count(at: band &+ (try types.offset("Band", "allowance")))
        if (memory.word(band &+ (try types.offset("Band", "heldBack"))) ?? 0) & 1 == 0 { isHeldBack = false }
        for worker in try workers(of: band) {
          if let kept = memory.word(worker &+ (try types.offset("WorkerRecord", "kept"))), kept != 0 {
            info.waiting += 1
          }
        }
      }
      if isHeldBack { info.activeLimit = 0 }
      snapshot.bands.append(info)
    }
  }
}
