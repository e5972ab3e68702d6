internal import Glibc

/// Where the control group of this process is in the file system, for one controller: the processor's or the
/// memory's.
///
/// There are two kinds of trees. In version 2 all controllers share one tree. In version 1 each controller
/// may have its own. A machine can have both (a hybrid); then a controller belongs to one of them, to the version 1
/// tree if that names it. Two files have the rest:
///
/// - `cgroup`, one line per tree: number, controllers (none in version 2), the path of our group;
/// - `mountinfo`, one line per mount: which part of the tree can be seen, and where.
package struct CgroupTree {
  /// The two layouts of the kernel's interface.
  package enum Version { case one, two }

  package let version: Version
  /// The directory through which the tree is seen.
  private let mountPoint: [UInt8]
  /// The names from there down to our group.
  private let names: [ArraySlice<UInt8>]

  /// Calls `body` with the directory of our group, then with that of each ancestor that can be seen.
  package func forEachLevel(_ body: (_ directory: [UInt8]) -> Void) {
    for depth in stride(from: names.count, through: 0, by: -1) {
      body(names[..<depth].reduce(into: mountPoint) { $0 += [UInt8(ascii: "/")] + $1 })
    }
  }

  // MARK: Looking it up

  /// The tree of the calling thread, nil if there is none or it cannot be seen.
  /// - Parameters:
  ///   - controller: its name in version 1.
  ///   - root: put before every path, for tests.
  package static func ofThisProcess(controller: String = "cpu", root: String) -> CgroupTree? {
    // The files of `self` are those of the main thread, which may have ended while others go on: then its
    // `mountinfo` cannot be opened. `thread-self` is missing in kernels before 3.17.
    find(controller, root: root, process: "/proc/thread-self")
      ?? find(controller, root: root, process: "/proc/self")
  }

  private static func find(_ controller: String, root: String, process: String) -> CgroupTree? {
    guard let group = membership(controller, in: Array((root + process + "/cgroup").utf8)) else { return nil }
    var best: Mount?
    forEachLine(of: Array((root + process + "/mountinfo").utf8)) { line in
      guard let mount = Mount(line: line, controller, group.version, path: group.path) else { return true }
      // A tree can be mounted several times, in part; the part with the fewest levels missing counts.
      if best.map({ mount.missing < $0.missing }) ?? true { best = mount }
      return mount.missing > 0
    }
    return best.map {
      CgroupTree(version: group.version, mountPoint: Array(root.utf8) + $0.point, names: $0.names)
    }
  }

  /// Which tree has the controller, and the path of our group in it.
  private static func membership(_ controller: String, in file: [UInt8]) -> (version: Version, path: [UInt8])?
  {
    var found: (version: Version, path: [UInt8])?
    forEachLine(of: file) { line in
      // The path may contain colons itself.
      let fields = line.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { return true }
      if fields[1].isEmpty {
        found = (.two, Array(fields[2]))
      } else if fields[1].hasItem(controller) {
        found = (.one, Array(fields[2]))
        return false
      }
      return true
    }
    return found
  }

  // MARK: Mounts

  /// A mount through which our group, or at least an ancestor of it, can be seen.
  private struct Mount {
    let point: [UInt8]
    let names: [ArraySlice<UInt8>]
    /// How many levels between our namespace and this mount cannot be seen; more than any number if it
    /// shows only an ancestor from above the namespace.
    let missing: Int

    /// Nil if the line describes another kind of mount, or a part of the tree without our group.
    init?(line: [UInt8], _ controller: String, _ version: Version, path: [UInt8]) {
      // Identifier, parent, device, root, mount point, options, any number of tags, a dash, type, source,
      // options of the file system.
      let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
      guard let dash = fields.dropFirst(6).firstIndex(where: { $0.elementsEqual("-".utf8) }),
        dash + 3 < fields.count
      else { return nil }
      switch version {
      case .one:
        guard fields[dash + 1].elementsEqual("cgroup".utf8), fields[dash + 3].hasItem(controller) else {
          return nil
        }
      case .two:
        guard fields[dash + 1].elementsEqual("cgroup2".utf8) else { return nil }
      }
      let rootNames = Mount.unescaped(fields[3]).split(separator: UInt8(ascii: "/"))
      let groupNames = path.split(separator: UInt8(ascii: "/"))
      point = Mount.unescaped(fields[4])

      // Both paths are relative to the root of our cgroup namespace. What lies outside of it begins with as
      // many ".." as it takes to climb to a common ancestor, and then goes down by names that differ.
      if groupNames.starts(with: rootNames) {
        let rest = groupNames.dropFirst(rootNames.count)
        // More ".." than the root has: our group is outside of what is mounted.
        if rest.contains(where: { $0.isParent }) { return nil }
        names = Array(rest)
        missing = rootNames.count
        return
      }
      // A mount that begins further up than our group is shows an ancestor, but the names from there to us
      // are not known. The ancestor's own limit still holds.
      let climbs = rootNames.count { $0.isParent }
      guard climbs == rootNames.count, climbs > groupNames.count(where: { $0.isParent }) else { return nil }
      names = []
      missing = .max
    }

    /// The field without the kernel's octal escapes of space, tab, newline and backslash.
    private static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
      var result: [UInt8] = []
      result.reserveCapacity(field.count)
      var rest = field
      while let byte = rest.popFirst() {
        let digits = rest.prefix(3)
        if byte == UInt8(ascii: "\\"), digits.count == 3,
          let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
        {
          result.append(value)
          rest.removeFirst(3)
        } else {
          result.append(byte)
        }
      }
      return result
    }
  }
}

extension ArraySlice<UInt8> {
  /// Whether `item` is one of the comma-separated items of this field.
  fileprivate func hasItem(_ item: String) -> Bool {
    split(separator: UInt8(ascii: ",")).contains { $0.elementsEqual(item.utf8) }
  }

  fileprivate var isParent: Bool { elementsEqual("..".utf8) }
}

/// Reading the kernel's text files in small pieces. They have no size in advance, and they can be
/// shorter or longer than expected; a file that cannot be read counts as empty.
extension CgroupTree {
  /// Calls `body` with each line, without its newline, until it returns false.
  package static func forEachLine(of path: [UInt8], _ body: (_ line: [UInt8]) -> Bool) {
    guard let file = open(path) else { return }
    defer { close(file) }
    // SAFETY: the buffer stays inside of the closure; `line` copies what it keeps.
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      var line: [UInt8] = []
      while true {
        var rest = read(file, into: buffer)
        if rest.isEmpty { break }
        while let newline = rest.firstIndex(of: UInt8(ascii: "\n")) {
          line += rest[..<newline]
          guard body(line) else { return }
          line.removeAll(keepingCapacity: true)
          rest = rest[(newline + 1)...]
        }
        line += rest
      }
      if !line.isEmpty { _ = body(line) }
    }
  }

  /// The text of a file of one short line, without its newline; nil if it cannot be read, is empty or has `limit` bytes
  /// or more. Two numbers are shorter than 64.
  package static func contents(of path: [UInt8], upTo limit: Int = 64) -> [UInt8]? {
    guard let file = open(path) else { return nil }
    defer { close(file) }
    // SAFETY: the buffer stays inside of the closure, which returns a copy.
    return withUnsafeTemporaryAllocation(byteCount: limit, alignment: 1) { buffer in
      let text = read(file, into: buffer)
      if text.isEmpty || text.count == buffer.count { return nil }
      return Array(text.last == UInt8(ascii: "\n") ? text.dropLast() : text)
    }
  }

  /// Whether the system lets the process open files now: false if it has no descriptor or memory left.
  static var canRead: Bool {
    guard let file = open([UInt8(ascii: "/")]) else { return ![EMFILE, ENFILE, ENOMEM].contains(errno) }
    close(file)
    return true
  }

  private static func open(_ path: [UInt8]) -> Int32? {
    // SAFETY: a byte string that ends with zero, as `open` wants it, alive until the closure returns.
    (path + [0]).withUnsafeBytes { bytes in
      let name = bytes.assumingMemoryBound(to: CChar.self).baseAddress!
      while true {
        let file = Glibc.open(name, O_RDONLY | O_CLOEXEC)
        if file >= 0 { return file }
        if errno != EINTR { return nil }
      }
    }
  }

  /// The next piece of the file, empty at its end or if it cannot be read.
  private static func read(
    _ file: Int32, into buffer: UnsafeMutableRawBufferPointer
  ) -> Slice<UnsafeRawBufferPointer> {
    while true {
      // SAFETY: the kernel writes at most `buffer.count` bytes, and only those it wrote are returned.
      let count = Glibc.read(file, buffer.baseAddress, buffer.count)
      if count >= 0 { return UnsafeRawBufferPointer(buffer)[..<count] }
      if errno != EINTR { return UnsafeRawBufferPointer(buffer)[..<0] }
    }
  }
}
