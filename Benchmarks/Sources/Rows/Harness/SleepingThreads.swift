import Glibc

/// Returns when every other thread of the process sleeps in the kernel, so that what follows has to
/// wake one. A runtime may spin before it parks; how long is its own business, hence no fixed pause.
func waitUntilOtherThreadsSleep() {
  let pause: useconds_t = 200
  for _ in 0..<10_000 {
    usleep(pause)
    if otherThreadsSleep() { return }
  }
  fail("the runtime's threads never went to sleep, so there is nothing to wake")
}

private func otherThreadsSleep() -> Bool {
  for thread in otherThreads() {
    // A thread that ends between the listing and the reading is not awake either.
    guard let stat = readSmallFile("/proc/self/task/\(thread)/stat") else { continue }
    if state(inStat: stat) != UInt8(ascii: "S") { return false }
  }
  return true
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

/// The state letter follows the thread's name, which is in parentheses and may hold some itself.
private func state(inStat stat: [UInt8]) -> UInt8? {
  guard let close = stat.lastIndex(of: UInt8(ascii: ")")), close + 2 < stat.count else { return nil }
  return stat[close + 2]
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
