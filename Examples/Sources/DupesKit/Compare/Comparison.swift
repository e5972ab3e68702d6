/// Finds the sets of equal files in a catalogue, with two parallel loops: one parts the large crowds of
/// files of one size by a hash, the other compares bytes.
struct Comparison: Sendable {
  let catalogue: Catalogue
  let followsSymbolicLinks: Bool
  let findings: Findings
  let counters: Counters
  let budget: DescriptorBudget
  let cancellation: Cancellation
  private let scratch = ScratchPool()

  init(
    _ catalogue: Catalogue, followsSymbolicLinks: Bool, into findings: Findings, _ counters: Counters,
    budget: DescriptorBudget, cancellation: Cancellation
  ) {
    self.catalogue = catalogue
    self.followsSymbolicLinks = followsSymbolicLinks
    self.findings = findings
    self.counters = counters
    self.budget = budget
    self.cancellation = cancellation
  }

  /// Compares everything; returns when it is done or cancelled.
  func run() {
    var (small, large) = SizeClass.classes(of: catalogue)
    counters.setFilesToCompare((small + large).reduce(0) { $0 + $1.files.count })
    small += sieve(&large)
    let batches = Batch.batches(of: small)

    // One iteration is a batch, not a file: an iteration should last long enough to make the hand-over
    // between threads negligible, and there should be enough of them to keep all cores busy to the end.
    DispatchQueue.concurrentPerform(iterations: batches.count) { number in
      if cancellation.isCancelled { return }
      withPartition { partition in
        var sets: [[FileID]] = []
        for part in batches[number].classes {
          sets += partition.sets(among: part.files, size: part.size)
          counters.finished(files: part.files.count)
        }
        if !sets.isEmpty { findings.add(sets) }
      }
    }
  }

  /// Parts each class too large for one worker, by the hash of its first window, in slices that run in
  /// parallel. What comes out together agrees in that window, up to a collision.
  private func sieve(_ classes: inout [SizeClass]) -> [SizeClass] {
    var parted: [SizeClass] = []
    for crowd in classes {
      let hashes = Slots<UInt64?>(count: crowd.files.count, initially: nil)
      let slice = Partition.crowd
      let length = Partition.window(at: 0, size: crowd.size)
      DispatchQueue.concurrentPerform(iterations: (crowd.files.count + slice - 1) / slice) { number in
        withPartition { partition in
          for place in number * slice..<min((number + 1) * slice, crowd.files.count) {
            hashes[place] = partition.hash(crowd.files[place], at: 0, length)
          }
        }
      }
      var hashed: [HashedFile] = []
      for (place, file) in crowd.files.enumerated() {
        if let hash = hashes[place] { hashed.append(HashedFile(hash: hash, file: file)) }
      }
      let alike = HashedFile.crowds(&hashed)
      counters.finished(files: crowd.files.count - alike.reduce(0) { $0 + $1.count })
      parted += alike.map { SizeClass(size: crowd.size, files: $0) }
    }
    classes = []
    return parted
  }

  /// Runs `body` with memory of its own and one descriptor's permit.
  private func withPartition(_ body: (Partition) -> Void) {
    budget.withPermit {
      scratch.withScratch { scratch in
        body(
          Partition(
            reader: WindowReader(catalogue: catalogue, followsSymbolicLinks: followsSymbolicLinks),
            scratch: scratch, findings: findings, counters: counters, cancellation: cancellation))
      }
    }
  }
}

/// Two files or more that have one size, so that they may be equal: one name of each.
struct SizeClass: Sendable {
  let size: Int64
  let files: [FileID]

  /// All classes of a catalogue: those that one worker handles as they are, and those to be parted first.
  static func classes(of catalogue: Catalogue) -> (small: [SizeClass], large: [SizeClass]) {
    var small: [SizeClass] = []
    var large: [SizeClass] = []
    var names: [FileID] = []
    for (size, chain) in catalogue.chains where chain.count > 1 {
      names.removeAll(keepingCapacity: true)
      catalogue.appendFiles(of: chain, to: &names)
      let files = oneNamePerFile(&names, in: catalogue)
      if files.count < 2 { continue }
      let found = SizeClass(size: size, files: files)
      if found.isLarge { large.append(found) } else { small.append(found) }
    }
    return (small, large)
  }

  /// Too much for one worker, be it by the number of files or by their bytes: a few long films of one size
  /// would otherwise be compared by one worker while the others have nothing left to do.
  private var isLarge: Bool {
    files.count > Partition.crowd || (files.count > 2 && size > (64 << 20) / Int64(files.count))
  }

  /// Hard links are one file under several names, and its bytes need reading only once.
  private static func oneNamePerFile(_ names: inout [FileID], in catalogue: Catalogue) -> [FileID] {
    let records = catalogue.records
    names.sort {
      let (left, right) = (records[Int($0)], records[Int($1)])
      return (left.device, left.inode, $0) < (right.device, right.inode, $1)
    }
    var files: [FileID] = []
    files.reserveCapacity(names.count)
    for name in names {
      if let last = files.last, FileIdentity(records[Int(last)]) == FileIdentity(records[Int(name)]) {
        continue
      }
      files.append(name)
    }
    return files
  }
}

/// Some classes that one iteration of the parallel loop compares.
struct Batch: Sendable {
  private(set) var classes: [SizeClass] = []

  /// In bytes read, about. No integer: sparse files may be large enough to overflow it.
  private(set) var cost = 0.0

  /// Cuts the classes into batches, the most expensive first: an expensive one started last would leave all
  /// cores but one idle at the end.
  static func batches(of classes: [SizeClass]) -> [Batch] {
    var batches: [Batch] = []
    var open = Batch()
    for part in classes.sorted(by: { $0.size < $1.size }) {
      open.classes.append(part)
      open.cost += Double(part.files.count) * (Double(part.size) + Batch.costOfOpening)
      if open.cost > Batch.enough {
        batches.append(open)
        open = Batch()
      }
    }
    if !open.classes.isEmpty { batches.append(open) }
    return batches.sorted { $0.cost > $1.cost }
  }

  /// Opening a file takes about as long as reading this many bytes.
  private static let costOfOpening = 16384.0

  /// About a millisecond of work.
  private static let enough = 2_097_152.0
}

/// An array whose elements are written by the iterations of a parallel loop.
// SAFETY: each iteration writes only elements of its own, and they are read only after the loop, whose
// end orders all iterations before what follows.
final class Slots<Element: Sendable>: @unchecked Sendable {
  private let elements: UnsafeMutableBufferPointer<Element>

  init(count: Int, initially element: Element) {
    elements = .allocate(capacity: count)
    elements.initialize(repeating: element)
  }

  deinit {
    elements.deinitialize()
    elements.deallocate()
  }

  subscript(place: Int) -> Element {
    get { elements[place] }
    set { elements[place] = newValue }
  }
}
