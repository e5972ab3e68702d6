internal import Glibc

/// One descriptor in the kernel's event queue, for all watches that share it.
///
/// There is one owner for each registration, so that a direction that is cancelled never takes another
/// with it. Registrations are used again; the generation tells a late event of a former life.
final class FileRegistration {
  let index: Int
  let lock = Lock()

  // GUARDED BY `lock`.
  private(set) var generation: UInt32 = 0
  private(set) var descriptor: Int32 = -1
  private(set) var isInKernel = false
  /// Whether the kernel was told last to report changes, and so disarms nothing by itself.
  private var staysArmed = false
  private var first: FileWatch?

  init(index: Int) { self.index = index }

  /// Begins a life for `descriptor`.
  func begin(_ descriptor: Int32) {
    generation &+= 1
    self.descriptor = descriptor
  }

  /// Ends it: events still on their way are those of a former generation.
  func end() {
    generation &+= 1
    descriptor = -1
    isInKernel = false
  }

  var isEmpty: Bool { first == nil }

  func append(_ watch: FileWatch) {
    watch.next = first
    first = watch
    watch.registration = self
  }

  func detach(_ watch: FileWatch) {
    if first === watch {
      first = watch.next
    } else {
      var before = first
      while let link = before, link.next !== watch { before = link.next }
      before?.next = watch.next
    }
    watch.next = nil
    watch.registration = nil
  }

  /// Takes out the armed watches.
  func detachArmed() -> [FileWatch] {
    var armed: [FileWatch] = []
    var link = first
    while let watch = link {
      if watch.isArmed { armed.append(watch) }
      link = watch.next
    }
    for watch in armed { detach(watch) }
    return armed
  }

  /// What the armed watches wait for, and how.
  private var wanted: Readiness {
    var wanted = Readiness()
    var changesOnly = true
    var link = first
    while let watch = link {
      if watch.isArmed {
        wanted.insert(watch.interest.readiness)
        if !watch.waitsForChange { changesOnly = false }
      }
      link = watch.next
    }
    return wanted.isEmpty ? [] : wanted.union(changesOnly ? .edge : .oneShot)
  }

  /// Tells the kernel what is wanted now.
  /// - Returns: 0, or the errno negated.
  func update(in poller: Poller) -> Int {
    let interest = wanted
    if isInKernel {
      // A registration that wants nothing has fired, or is about to be told what it wants.
      if interest.isEmpty { return 0 }
      let failure = poller.control(.modify, descriptor, interest, index: index, generation: generation)
      // The number was closed and stands for another file now.
      guard failure == -Int(ENOENT) else {
        if failure == 0 { staysArmed = interest.contains(.edge) }
        return failure
      }
      isInKernel = false
    }
    var failure = poller.control(.add, descriptor, interest, index: index, generation: generation)
    if failure == -Int(EEXIST) {
      // A former life was closed while a duplicate kept its file in the kernel's queue: take it over.
      failure = poller.control(.modify, descriptor, interest, index: index, generation: generation)
    }
    isInKernel = failure == 0
    staysArmed = isInKernel && interest.contains(.edge)
    return failure
  }

  /// Takes the descriptor out of the kernel's queue.
  func leaveKernel(_ poller: Poller) {
    guard isInKernel else { return }
    isInKernel = false
    // EBADF or ENOENT: the client has closed it already, and the kernel let go then.
    _ = poller.control(.remove, descriptor, [], index: index, generation: generation)
  }

  /// An event has come: disarms the watches it concerns.
  /// - Returns: those to tell.
  func take(_ ready: Readiness, generation: UInt32, from poller: Poller) -> Told {
    lock.lock()
    defer { lock.unlock() }
    var told = Told()
    guard generation == self.generation else { return told }
    let forAll = !ready.isDisjoint(with: [.error, .hangUp])
    var link = first
    while let watch = link {
      if watch.isArmed && (forAll || ready.contains(watch.interest.readiness)) {
        if !watch.waitsForChange { watch.isArmed = false }
        told.append(watch)
      }
      link = watch.next
    }
    // The kernel has disarmed all of them, unless all wait for changes: who was not meant, or is to be told
    // again, must be armed again.
    if !staysArmed && !wanted.isEmpty { told.failure = update(in: poller) }
    return told
  }

  /// Watches to tell; mostly one.
  struct Told {
    private var first: FileWatch?
    private var rest: [FileWatch] = []
    /// With what the kernel refused to watch on for those that were not meant, negated; 0 if it did not.
    var failure = 0

    mutating func append(_ watch: FileWatch) {
      if first == nil { first = watch } else { rest.append(watch) }
    }

    func tell() {
      first?.tellOwner()
      for watch in rest { watch.tellOwner() }
    }
  }
}

// SAFETY: the index is constant, the rest is GUARDED BY `lock`.
extension FileRegistration: @unchecked Sendable {}
