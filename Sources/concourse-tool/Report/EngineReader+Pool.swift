/// The bands of the pool.
extension EngineReader {
  func bandName(_ band: UInt64) throws(EngineTypes.Missing) -> String {
    let name = band &+ (try types.offset("Band", "name"))
    guard let start = memory.word(name), let count = memory.word(name &+ 8), count < 64,
      let text = memory.bytes(at: start, count: Int(count))
    else { return "" }
    return String(decoding: text, as: UTF8.self)
  }

  mutating func readBands() throws(EngineTypes.Missing) {
    var bands: [UInt64] = []
    var waiting: [UInt64: Int] = [:]
    for level in 1..<6 as Range<UInt64> {
      guard let root = memory.word(record.roots &+ level * 8),
        let band = memory.word(root &+ (try types.offset("RootQueue", "band"))),
        let queue = memory.word(root &+ (try types.offset("RootQueue", "client")))
      else { continue }
      if !bands.contains(band) { bands.append(band) }
      waiting[band, default: 0] += snapshot.queues[queue]?.items ?? 0
    }
    for band in bands.reversed() {
      let isHeldBack = (memory.word(band &+ (try types.offset("Band", "heldBack"))) ?? 0) & 1 != 0
      let allowed = snapshot.width + memory.count(at: band &+ (try types.offset("Band", "allowance")))
      let limit = isHeldBack ? 0 : allowed
      let counts = BandWord(bits: memory.word(band &+ (try types.offset("Band", "counters"))) ?? 0)
      var entries = waiting[band] ?? 0
      var worker = memory.word(band &+ (try types.offset("Band", "newestRecord"))) ?? 0
      var seen = 0
      while worker != 0 && seen < 100_000 {
        if let kept = memory.word(worker &+ (try types.offset("WorkerRecord", "kept"))), kept != 0 {
          entries += 1
        }
        worker = memory.word(worker &+ (try types.offset("WorkerRecord", "older"))) ?? 0
        seen += 1
      }
      snapshot.bands.append(
        BandInfo(name: try bandName(band), counts: counts, activeLimit: limit, waiting: entries))
    }
  }
}
