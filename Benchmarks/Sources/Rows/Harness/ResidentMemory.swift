import CBench

/// Bytes of memory that are resident and belong to this process alone.
func privateResidentBytes() -> Int {
  guard let text = readSmallFile("/proc/self/smaps_rollup") else {
    fail("cannot read /proc/self/smaps_rollup")
  }
  var kibibytes = 0
  for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
    let words = line.split(separator: " ")
    guard words.count == 3, words[0] == "Private_Clean:" || words[0] == "Private_Dirty:" else { continue }
    guard let value = Int(words[1]) else { fail("cannot understand smaps_rollup: \(line)") }
    kibibytes += value
  }
  verify(kibibytes > 0, equals: true, "resident memory is known")
  return kibibytes * 1024
}

/// The growth of private resident memory while `work` runs, in bytes.
func residentGrowth(_ work: () -> Void) -> Int {
  // The first reading allocates the buffers that the second one reuses.
  _ = privateResidentBytes()
  let before = privateResidentBytes()
  work()
  return privateResidentBytes() - before
}

/// To be called first in a memory row.
func prepareToMeasureMemory() {
  verify(bench_forbid_huge_pages(), equals: 0, "huge pages are off")
}
