import ExampleSupport
import Glibc

/// Finds the sets of equal files.
///
/// The files of one size are read side by side, window by window. In each window a file is compared byte by byte with
/// one representative of each content met so far, and the files that agree go on to the next window together. So a file
/// is read no further than the window in which it differs, and two files are in one set only if all their bytes were
/// compared. No hash decides that.
struct Comparison: Sendable {
  private let job: Job
  private let budget: DescriptorBudget
  private let counters: Counters
  private let catalogue: Catalogue

  init(_ job: Job) {
    self.job = job
    budget = job.budget
    counters = job.counters
    catalogue = job.index.contents
  }

  /// Returns when all is compared, or when the job is cancelled.
  func run() {
    // The expensive sizes first: one that started last would leave all other threads without work at the end. The
    // cost is no integer, because the sizes of sparse files may overflow one. Opening a file costs as much as 16 KiB.
    let classes = catalogue.bySize.lazy.filter { $0.value.count > 1 }
      .map { (size: $0.key, files: $0.value, cost: Double($0.value.count) * (Double($0.key) + 16384)) }
      .sorted { $0.cost > $1.cost }
    counters.setFilesToCompare(classes.reduce(0) { $0 + $1.files.count })
    DispatchQueue.concurrentPerform(iterations: classes.count) { number in
      compare(classes[number].files, size: classes[number].size)
      counters.finished(files: classes[number].files.count)
    }
  }

  /// Finds the sets among `files`, which all have `size` bytes and agree before `start`. Where files part, the parts
  /// are compared at the same time.
  private func compare(_ files: [FileID], size: Int64, from start: Int64 = 0) {
    var (files, offset) = (files, start)
    while !job.isCancelled {
      // Most files differ early, so the first window is small. The others are large, as each is worth an opening.
      let window = Window(offset: offset, length: Int(min(size - offset, offset == 0 ? 16 << 10 : 256 << 10)))
      let sets =
        files.count > 64
        ? concurrentMap(sieve(files, window)) { split($0, window) }.flatMap { $0 } : split(files, window)
      let end = offset + Int64(window.length)
      if end == size { return job.findings.add(sets) }
      guard sets.count == 1 else {
        return DispatchQueue.concurrentPerform(iterations: sets.count) {
          compare(sets[$0], size: size, from: end)
        }
      }
      (files, offset) = (sets[0], end)
    }
  }

  private struct Window {
    let offset: Int64
    let length: Int

    /// Memory for its bytes and one more.
    func buffer() -> UnsafeMutableRawBufferPointer { .allocate(byteCount: length + 1, alignment: 16) }
  }

  /// The sets of two files or more that have the same bytes in the window.
  private func split(_ files: [FileID], _ window: Window) -> [[FileID]] {
    // One content of each part, and the next file's. No arrays: to count their references would take longer than to
    // compare the first bytes, which usually differ.
    var contents = [window.buffer()]
    defer { for content in contents { content.deallocate() } }
    var parts: [[FileID]] = []
    for file in files where read(file, window, into: contents[parts.count]) {
      let candidate = contents[parts.count].baseAddress!
      // SAFETY: each buffer has `length` bytes, and more.
      if let match = parts.indices.first(where: {
        memcmp(contents[$0].baseAddress!, candidate, window.length) == 0
      }) {
        parts[match].append(file)
      } else {
        parts.append([file])
        contents.append(window.buffer())
      }
    }
    return parts.filter { $0.count > 1 }
  }

  /// Parts many files by a hash of the window, which bounds the memory and the number of comparisons. Files in
  /// different parts differ; those in one part may differ too, if their hashes collide.
  private func sieve(_ files: [FileID], _ window: Window) -> [[FileID]] {
    let hashes = concurrentMap(files) { file -> Int? in
      let content = window.buffer()
      defer { content.deallocate() }
      guard read(file, window, into: content) else { return nil }
      var hasher = Hasher()
      hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: content[..<window.length]))
      return hasher.finalize()
    }
    var parts: [Int: [FileID]] = [:]
    for (file, hash) in zip(files, hashes) {
      if let hash { parts[hash, default: []].append(file) }
    }
    return parts.values.filter { $0.count > 1 }
  }

  /// Reads the window of a file.
  ///
  /// - Returns: false if the file must be left out.
  private func read(_ file: FileID, _ window: Window, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
    if job.isCancelled { return false }
    let record = catalogue.records[file]
    let reason = budget.withPermit { record.read(at: window.offset, window.length, into: buffer) }
    counters.compared(window.length)
    if let reason { job.findings.skip(record.path, reason) }
    return reason == nil
  }
}

extension FileRecord {
  /// Reads `length` bytes, and checks that the file is still the one that was recorded. It is opened for each window,
  /// so that a comparison of many large files needs one descriptor.
  ///
  /// - Parameter buffer: has room for one byte more: reading on at the end shows whether the file has grown.
  /// - Returns: why the file must be left out, or nil.
  fileprivate func read(at offset: Int64, _ length: Int, into buffer: UnsafeMutableRawBufferPointer)
    -> Reason?
  {
    // Not blocking: to open a pipe that has taken the file's place would hang.
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW) }
    guard descriptor >= 0 else { return .system(errno: errno) }
    defer { close(descriptor) }
    let wanted = length + (offset + Int64(length) == size ? 1 : 0)
    var count = 0
    repeat {
      // SAFETY: the buffer has `length + 1` bytes, and `wanted` is at most that.
      let got = pread(descriptor, buffer.baseAddress! + count, wanted - count, off_t(offset) + off_t(count))
      if got < 0 && errno == EINTR { continue }
      if got < 0 { return .system(errno: errno) }
      if got == 0 { break }
      count += got
    } while count < length
    // After the read: a change before or during it shows in the status, so all windows of a file are of one content.
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return .system(errno: errno) }
    guard matches(status), count <= length else { return .changed }
    return count < length ? .shorterThanItsSize : nil
  }
}

/// `map` whose iterations run at the same time.
private func concurrentMap<Element: Sendable, Result: Sendable>(
  _ elements: [Element], _ transform: @Sendable (Element) -> Result
) -> [Result] {
  Array(unsafeUninitializedCapacity: elements.count) { buffer, count in
    // SAFETY: each iteration initializes an element of its own, and all have when `concurrentPerform` returns.
    nonisolated(unsafe) let places = buffer
    DispatchQueue.concurrentPerform(iterations: elements.count) { index in
      places.initializeElement(at: index, to: transform(elements[index]))
    }
    count = elements.count
  }
}
