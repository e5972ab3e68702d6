import ExampleSupport
import Glibc

/// Visits every directory under the roots, with two queues:
///
/// - `plan`, a serial queue, decides what is visited next. Only its items wait for descriptors, so a shortage blocks
///   one thread. If the workers waited, the pool would replace each of them by another thread that waits as well.
/// - `workers`, a concurrent queue, reads directories. A worker hands the subdirectories that it finds to `plan`.
// SAFETY: `roots` is GUARDED BY `plan` and `visited` by `visits`, both serial queues; all else is constant and
// Sendable.
final class Walk: @unchecked Sendable {
  /// Empty when the last directory of the last root has been read.
  let finished = DispatchGroup()

  private let job: Job
  private let plan = DispatchQueue(label: "dupes.walk.plan")
  private let workers = DispatchQueue(label: "dupes.walk.workers", attributes: .concurrent)
  private let visits = DispatchQueue(label: "dupes.walk.visits")
  /// The directories of the current root that are being read or wait for that.
  private let scanning = DispatchGroup()
  private var roots: [Bytes]
  private var visited: Set<FileIdentity> = []

  init(_ job: Job) {
    self.job = job
    roots = job.options.roots.reversed().map(Walk.rootPath)
  }

  /// The root as the paths below it begin: with a `/` at its end. A name that begins with a tab gets `./` in front,
  /// because a tab at the start of a line of the output has another meaning.
  private static func rootPath(_ root: Bytes) -> Bytes {
    (root.first == UInt8(ascii: "\t") ? Bytes("./".utf8) : []) + root
      + (root.last == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")])
  }

  /// Starts and returns at once.
  func start() {
    finished.enter()
    plan.async { self.visitNextRoot() }
  }

  /// The roots are visited one after the other, each by all workers. So a directory that is under two roots has the
  /// same path in each run: that under the first root.
  private func visitNextRoot() {
    guard let root = roots.popLast(), !job.isCancelled else { return finished.leave() }
    admit([root], areRoots: true)
    scanning.notify(queue: plan) { self.visitNextRoot() }
  }

  /// Submits directories to the workers, several in an item where there are many: a small directory is read in less
  /// time than it takes to wake a thread.
  private func admit(_ directories: [Bytes], areRoots: Bool = false) {
    dispatchPrecondition(condition: .onQueue(plan))
    let size = min(max(1, directories.count / 4), 16)
    for start in stride(from: 0, to: directories.count, by: size) {
      let batch = directories[start..<min(start + size, directories.count)]
      job.budget.acquire()
      workers.async(group: scanning) {
        defer { self.job.budget.release() }
        for directory in batch where !self.job.isCancelled { self.scan(directory, isRoot: areRoots) }
      }
    }
  }

  /// Reads one directory, on a worker that holds a permit.
  private func scan(_ path: Bytes, isRoot: Bool) {
    guard let stream = open(path, isRoot: isRoot) else {
      return job.findings.skip(path, .system(errno: errno))
    }
    defer { closedir(stream) }
    var status = stat()
    guard fstat(dirfd(stream), &status) == 0 else { return job.findings.skip(path, .system(errno: errno)) }
    // Roots may overlap.
    let identity = FileIdentity(status)
    guard visits.sync(execute: { visited.insert(identity).inserted }) else { return }

    var listing = DirectoryListing(path, job)
    listing.read(stream)
    let subdirectories = listing.subdirectories
    if subdirectories.isEmpty { return }
    scanning.enter()  // the root is not done before `plan` has admitted these
    plan.async {
      self.admit(subdirectories)
      self.scanning.leave()
    }
  }

  private func open(_ path: Bytes, isRoot: Bool) -> OpaquePointer? {
    // A root may be a symbolic link, and the `/` at its end has the kernel follow it. Below the roots none is
    // followed.
    let exact = isRoot ? path : Bytes(path.dropLast())
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (isRoot ? 0 : O_NOFOLLOW)
    let descriptor = exact.withCString { Glibc.open($0, flags) }
    guard descriptor >= 0 else { return nil }
    if let stream = fdopendir(descriptor) { return stream }
    let cause = errno
    close(descriptor)
    errno = cause
    return nil
  }
}

/// Reads one directory: adds its files to the index, and collects its subdirectories.
private struct DirectoryListing {
  private(set) var subdirectories: [Bytes] = []

  private let path: Bytes
  private let job: Job
  private var records: [FileRecord] = []

  init(_ path: Bytes, _ job: Job) {
    self.path = path
    self.job = job
  }

  mutating func read(_ stream: OpaquePointer) {
    while !job.isCancelled {
      errno = 0  // readdir returns nil at the end and after an error; only errno tells them apart
      guard let entry = readdir(stream) else {
        if errno != 0 { job.findings.skip(path, .system(errno: errno)) }
        break
      }
      // SAFETY: name and type are read in the stream's own buffer, before the next readdir. `entry.pointee` would
      // copy 280 bytes, some of them perhaps beyond the end of a short entry.
      let bytes = UnsafeRawPointer(entry)
      let name = bytes.advanced(by: DirectoryListing.nameOffset).assumingMemoryBound(to: CChar.self)
      take(
        name, type: Int(bytes.load(fromByteOffset: DirectoryListing.typeOffset, as: UInt8.self)),
        dirfd(stream))
      if records.count == 8192 { deliver() }
    }
    deliver()
  }

  /// Takes one entry. The type that comes with the name often saves the call for the status.
  private mutating func take(_ name: UnsafePointer<CChar>, type: Int, _ descriptor: Int32) {
    let dot = CChar(UInt8(ascii: "."))
    if name[0] == dot && (name[1] == 0 || (name[1] == dot && name[2] == 0)) { return }
    switch type {
    case Int(DT_DIR): return subdirectories.append(path(of: name) + [UInt8(ascii: "/")])
    case Int(DT_REG), Int(DT_UNKNOWN): break
    default: return  // a symbolic link, a pipe, a socket, a device
    }
    var status = stat()
    guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
      return job.findings.skip(path(of: name), .system(errno: errno))
    }
    switch status.st_mode & S_IFMT {
    case S_IFDIR: subdirectories.append(path(of: name) + [UInt8(ascii: "/")])
    case S_IFREG where status.st_size >= job.options.minimumSize:
      records.append(FileRecord(path(of: name), status))
    default: break
    }
  }

  private mutating func deliver() {
    if !records.isEmpty { job.index.add(records) }
    records = []
  }

  private func path(of name: UnsafePointer<CChar>) -> Bytes {
    // SAFETY: the name is a C string.
    let name = UnsafeRawBufferPointer(start: name, count: strlen(name))
    var path = Bytes()
    path.reserveCapacity(self.path.count + name.count)
    path += self.path
    path += name
    return path
  }

  private static let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name)!
  private static let typeOffset = MemoryLayout<dirent>.offset(of: \.d_type)!
}
