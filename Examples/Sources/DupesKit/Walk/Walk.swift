import Glibc

/// Visits every directory under the roots. Two queues share the work:
///
/// - `plan`, a serial queue, decides what is visited next. It is the one place that waits for descriptors,
///   so that a shortage blocks one thread; were the workers to wait, the pool would replace each of them
///   by another thread that waits as well.
/// - `workers`, a concurrent queue, reads directories. A worker that finds subdirectories hands them to
///   `plan` and is done; it never waits for anybody.
// SAFETY: `roots` and `links` are GUARDED BY `plan`, a serial queue; all else is immutable and Sendable.
final class Walk: @unchecked Sendable {
  private let plan = DispatchQueue(label: "dupes.walk.plan")
  private let workers = DispatchQueue(label: "dupes.walk.workers", attributes: .concurrent)

  /// The directories being scanned and those that wait for it. Used once for each root.
  private let scanning = DispatchGroup()

  /// Empties when the last directory of the last root has been read.
  let finished = DispatchGroup()

  private var roots: [Bytes]
  private var links: [Bytes] = []

  private let selection: Selection
  private let seen = SeenDirectories()
  private let index: Index
  private let findings: Findings
  private let budget: DescriptorBudget
  private let cancellation: Cancellation

  init(
    roots: [Bytes], _ selection: Selection, into index: Index, _ findings: Findings,
    budget: DescriptorBudget, cancellation: Cancellation
  ) {
    self.roots = roots.reversed()
    self.selection = selection
    self.index = index
    self.findings = findings
    self.budget = budget
    self.cancellation = cancellation
  }

  /// Starts and returns at once.
  func start() {
    finished.enter()
    plan.async { self.visitNextRoot() }
  }

  /// The roots are visited one after the other, each with all workers; then the symbolic links to
  /// directories that turned up, which may lead to more of them. A directory that can be reached in
  /// several ways thereby gets the same name in each run: that of the first root, and a real path rather
  /// than one through a link.
  private func visitNextRoot() {
    dispatchPrecondition(condition: .onQueue(plan))
    if roots.isEmpty {
      roots = links.sorted { $1.precedes($0) }
      links = []
    }
    guard let root = roots.popLast(), !cancellation.isCancelled else {
      finished.leave()
      return
    }
    admit([root], throughLinks: true)
    scanning.notify(queue: plan) { self.visitNextRoot() }
  }

  /// Sends directories to the workers, several in one work item where there are many: a small directory is
  /// read in less time than it takes to wake another thread.
  private func admit(_ directories: [Bytes], throughLinks: Bool) {
    dispatchPrecondition(condition: .onQueue(plan))
    let size = min(max(1, directories.count / 4), 16)
    for start in stride(from: 0, to: directories.count, by: size) {
      let batch = directories[start..<min(start + size, directories.count)]
      budget.acquire()
      workers.async(group: scanning) {
        defer { self.budget.release() }
        for directory in batch where !self.cancellation.isCancelled {
          self.scan(directory, throughLink: throughLinks)
        }
      }
    }
  }

  /// Reads one directory, on a worker that holds a permit.
  private func scan(_ path: Bytes, throughLink: Bool) {
    guard let stream = open(path, throughLink: throughLink) else {
      findings.skip(path, .system(errno: errno))
      return
    }
    defer { closedir(stream) }
    var status = stat()
    guard fstat(dirfd(stream), &status) == 0 else {
      findings.skip(path, .system(errno: errno))
      return
    }
    guard seen.insert(FileIdentity(status)) else { return }

    var scan = DirectoryScan(path, selection, into: index, findings)
    scan.read(stream, until: cancellation)
    let (directories, linked) = (scan.subdirectories, scan.linkedDirectories)
    if directories.isEmpty && linked.isEmpty { return }
    scanning.enter()  // the root is not done before `plan` has seen these
    plan.async {
      self.links += linked
      self.admit(directories, throughLinks: false)
      self.scanning.leave()
    }
  }

  private func open(_ path: Bytes, throughLink: Bool) -> OpaquePointer? {
    // The `/` at the end would make the kernel follow a link; it goes, unless the path is just that.
    let exact = path.count > 1 && !throughLink ? Bytes(path.dropLast()) : path
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (throughLink ? 0 : O_NOFOLLOW)
    let descriptor = exact.withCPath { Glibc.open($0, flags) }
    guard descriptor >= 0 else { return nil }
    guard let stream = fdopendir(descriptor) else {
      let cause = errno
      close(descriptor)
      errno = cause
      return nil
    }
    return stream
  }
}

/// The directories visited already, by identity: this is what ends a cycle of symbolic links, and what
/// keeps overlapping roots from being read twice.
// SAFETY: `identities` is GUARDED BY `queue`, a serial queue whose `sync` is the lock.
private final class SeenDirectories: @unchecked Sendable {
  private let queue = DispatchQueue(label: "dupes.walk.seen")
  private var identities: Set<FileIdentity> = []

  /// Whether this is the first visit.
  func insert(_ identity: FileIdentity) -> Bool {
    queue.sync { identities.insert(identity).inserted }
  }
}
