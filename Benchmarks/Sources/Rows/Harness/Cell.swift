/// A number that work items add to. It lives outside of Swift's exclusivity checks and reference
/// counts, whose cost would be the same on both runtimes and would pull every ratio towards one. Its
/// memory is never freed: a row ends with its process. It has cache lines of its own, so that no row
/// depends on which object the allocator happens to put beside it.
///
/// SAFETY: it is shared without a lock on purpose: each row adds to it only under the exclusion that
/// the row measures (a serial queue, a barrier), so a runtime that breaks it shows a wrong sum.
struct Cell: @unchecked Sendable {
  private let pointer: UnsafeMutablePointer<Int>

  init() {
    // SAFETY: large and aligned enough for one Int, which is initialized here.
    let lines = UnsafeMutableRawPointer.allocate(byteCount: 128, alignment: 128)
    pointer = lines.bindMemory(to: Int.self, capacity: 1)
    pointer.initialize(to: 0)
  }

  var value: Int {
    get { pointer.pointee }
    nonmutating set { pointer.pointee = newValue }
  }

  @inline(__always)
  func add(_ amount: Int) { pointer.pointee &+= amount }
}

/// One counter for each index: for work whose items run in any order and at the same time. Each
/// item touches only its own slot, so counting needs no atomics.
///
/// SAFETY: items touch disjoint slots; the row reads all of them after it waited for every item.
struct Slots: @unchecked Sendable {
  private let base: UnsafeMutablePointer<Int32>
  let count: Int

  init(count: Int) {
    self.count = count
    base = .allocate(capacity: count)
    base.initialize(repeating: 0, count: count)
  }

  @inline(__always)
  func mark(_ index: Int) { base[index] &+= 1 }

  /// How many slots were marked exactly once since the last call; clears them.
  func takeMarkedOnce() -> Int {
    var once = 0
    for index in 0..<count {
      if base[index] == 1 { once += 1 }
      base[index] = 0
    }
    return once
  }
}
