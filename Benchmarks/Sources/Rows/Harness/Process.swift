import CBench
import Glibc

/// Returns when every other thread of the process sleeps in the kernel, so that the work after it has to wake one. A
/// runtime may spin before it parks, for as long as it likes; hence no fixed pause.
func waitUntilOtherThreadsSleep() {
  let pause: useconds_t = 200
  for _ in 0..<10_000 {
    usleep(pause)
    if !otherThreads().contains(where: isAwake) { return }
  }
  fail("the runtime's threads never went to sleep, so there is nothing to wake")
}

private func isAwake(_ thread: String) -> Bool {
  // A thread that ended between the listing and the reading is not awake either.
  guard let stat = readSmallFile("/proc/self/task/\(thread)/stat") else { return false }
  // The state follows the thread's name, which is in parentheses and may contain some.
  guard let close = stat.lastIndex(of: UInt8(ascii: ")")), close + 2 < stat.count else { return true }
  return stat[close + 2] != UInt8(ascii: "S")
}

/// The ids of all threads but the main one, on which rows run and whose id is the process's.
func otherThreads() -> [String] {
  guard let folder = opendir("/proc/self/task") else { fail("cannot open /proc/self/task") }
  defer { closedir(folder) }
  let ours = String(getpid())
  var threads: [String] = []
  while let entry = readdir(folder) {
    // SAFETY: the entry is valid until the next readdir; its name ends with a zero byte.
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
      String(decoding: bytes.prefix(while: { $0 != 0 }), as: UTF8.self)
    }
    if !name.hasPrefix("."), name != ours { threads.append(name) }
  }
  return threads
}

/// The contents of a file under /proc; nil if it is gone.
func readSmallFile(_ path: String) -> [UInt8]? {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return nil }
  defer { close(descriptor) }
  var contents: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 4096)
  while true {
    let count = read(descriptor, &buffer, buffer.count)
    guard count >= 0 else { return nil }
    if count == 0 { return contents }
    contents.append(contentsOf: buffer[..<count])
  }
}

/// Bytes of memory that are resident and belong to this process alone.
func privateResidentBytes() -> Int {
  guard let text = readSmallFile("/proc/self/smaps_rollup") else {
    fail("cannot read /proc/self/smaps_rollup")
  }
  var kibibytes = 0
  for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
    let words = line.split(separator: " ")
    guard words.count == 3, words[0] == "Private_Clean:" || words[0] == "Private_Dirty:" else { continue }
    guard let value = Int(words[1]) else { fail("cannot read smaps_rollup: \(line)") }
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

/// A memory row calls this first.
func prepareToMeasureMemory() {
  verify(bench_forbid_huge_pages(), equals: 0, "huge pages are off")
}
