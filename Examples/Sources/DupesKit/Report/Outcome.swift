/// What a search found.
package struct Outcome: Sendable {
  /// One file under all its names.
  package struct File: Sendable {
    /// In the order of their bytes, but a name that is no symbolic link comes first.
    package let names: [Bytes]
  }

  /// Two files or more with the same bytes (or, where hard links count, two names or more).
  package struct DuplicateSet: Sendable {
    package let size: Int64
    package let files: [File]
  }

  private let catalogue: Catalogue
  private let equalFiles: [[FileID]]

  /// What had to be left out, in the order of the paths.
  package let skipped: [Skipped]

  /// False when the search was called off: then nothing should be reported at all.
  package let isComplete: Bool

  /// How many names were looked at.
  package var fileCount: Int { catalogue.records.count }

  init(_ catalogue: Catalogue, _ found: (sets: [[FileID]], skipped: [Skipped]), isComplete: Bool) {
    self.catalogue = catalogue
    self.equalFiles = found.sets
    // A large file may fail in two windows; one line for it is enough.
    var skipped: [Skipped] = []
    for one in found.skipped.sorted(by: { $0.path.precedes($1.path) }) where skipped.last?.path != one.path {
      skipped.append(one)
    }
    self.skipped = skipped
    self.isComplete = isComplete
  }

  /// The sets, in the order of their first names: the same in each run, whichever thread was first.
  ///
  /// - Parameter countingHardLinks: whether the hard links of one file are duplicates of each other.
  package func sets(countingHardLinks: Bool) -> [DuplicateSet] {
    var links = namesByIdentity(all: countingHardLinks)
    var sets: [DuplicateSet] = []
    for equal in equalFiles {
      let files = equal.flatMap { file in
        let names = links.removeValue(forKey: FileIdentity(catalogue.records[Int(file)])) ?? [file]
        return countingHardLinks ? filePerName(names) : [self.file(names)]
      }
      sets.append(set(of: files, size: catalogue.records[Int(equal[0])].size))
    }
    if countingHardLinks {
      // What is left has no equal but itself.
      for names in links.values {
        let files = filePerName(names)
        if files.count > 1 { sets.append(set(of: files, size: catalogue.records[Int(names[0])].size)) }
      }
    }
    return sets.sorted { $0.files[0].names[0].precedes($1.files[0].names[0]) }
  }

  /// The files that have several names. Without hard links to count, only the sizes of the equal files are
  /// gone through.
  private func namesByIdentity(all: Bool) -> [FileIdentity: [FileID]] {
    let sizes = all ? Set(catalogue.chains.keys) : Set(equalFiles.map { catalogue.records[Int($0[0])].size })
    var names: [FileIdentity: [FileID]] = [:]
    var files: [FileID] = []
    for size in sizes {
      guard let chain = catalogue.chains[size], chain.count > 1 else { continue }
      files.removeAll(keepingCapacity: true)
      catalogue.appendFiles(of: chain, to: &files)
      for file in files { names[FileIdentity(catalogue.records[Int(file)]), default: []].append(file) }
    }
    return names.filter { $0.value.count > 1 }
  }

  private func set(of files: [File], size: Int64) -> DuplicateSet {
    DuplicateSet(size: size, files: files.sorted { $0.names[0].precedes($1.names[0]) })
  }

  private func file(_ names: [FileID]) -> File {
    let linked = names.filter { catalogue.records[Int($0)].isSymbolicLink }
    let real = names.filter { !catalogue.records[Int($0)].isSymbolicLink }
    return File(names: sorted(real) + sorted(linked))
  }

  /// Each hard link as a file of its own. A symbolic link never is: whoever removes all "duplicates" but
  /// that one is left with a link to nothing. It stays with the first real name.
  private func filePerName(_ names: [FileID]) -> [File] {
    let all = file(names).names
    let real = names.filter { !catalogue.records[Int($0)].isSymbolicLink }.count
    guard real > 1 else { return [File(names: all)] }
    return [File(names: [all[0]] + all[real...])] + all[1..<real].map { File(names: [$0]) }
  }

  private func sorted(_ names: [FileID]) -> [Bytes] {
    names.map { catalogue.path(of: $0) }.sorted { $0.precedes($1) }
  }
}

extension [Outcome.DuplicateSet] {
  /// How many files could go, and how many bytes that would free.
  package var waste: (files: Int, bytes: Int64) {
    reduce(into: (0, 0)) { total, set in
      total.0 += set.files.count - 1
      total.1 += Int64(set.files.count - 1) * set.size
    }
  }
}
