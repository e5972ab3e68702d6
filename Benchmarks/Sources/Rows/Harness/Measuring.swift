import CBench

/// The monotonic clock in nanoseconds.
func now() -> Int { bench_now() }

/// The nanoseconds that `work` takes.
func elapsed(_ work: () -> Void) -> Int {
  let start = now()
  work()
  return now() - start
}

/// The nanoseconds of the quickest pass after a warm-up. `pass` returns its own time.
func quickest(_ pass: () -> Int) -> Int {
  var passes = bench_passes()
  while bench_next_pass(&passes) { bench_record(&passes, pass()) }
  return passes.quickest
}

/// Nanoseconds for one of `operations`.
///
/// - Parameter check: `Measurement.check`; nil stands for `operations`.
func perOperation(_ operations: Int, check: Int? = nil, _ pass: () -> Int) -> Measurement {
  Measurement(
    value: Double(quickest(pass)) / Double(operations), operations: operations, check: check ?? operations)
}

/// Nanoseconds for one of `operations`, which together add `sum` to `cell` in each pass.
func perOperation(
  _ operations: Int, adding sum: Int, to cell: Cell, _ what: String, _ pass: () -> Int
) -> Measurement {
  perOperation(operations, check: sum) {
    cell.value = 0
    let time = pass()
    verify(cell.value, equals: sum, what)
    return time
  }
}

/// Runs `body` on two threads of the benchmark's own, which start together, each pinned to a core. Returns the
/// nanoseconds from the first start to the last end.
func elapsed(onTwoThreads body: @escaping @Sendable (Int) -> Void) -> Int {
  final class Box: Sendable {
    let body: @Sendable (Int) -> Void
    init(_ body: @escaping @Sendable (Int) -> Void) { self.body = body }
  }
  let box = Box(body)
  // SAFETY: both threads have ended when the call returns, and `box` lives until then.
  return withExtendedLifetime(box) {
    bench_time_two_threads(
      { context, thread in
        guard let context else { return }
        Unmanaged<Box>.fromOpaque(context).takeUnretainedValue().body(Int(thread))
      }, Unmanaged.passUnretained(box).toOpaque())
  }
}

/// What 0 + 1 + ... + (count - 1) must come to.
func sumOfIndices(below count: Int) -> Int { count * (count - 1) / 2 }

/// A number that work items add to. It lives outside of Swift's exclusivity checks and reference counts, whose cost
/// would be the same on both runtimes and would pull every ratio towards one. Its memory is never freed: a row ends with
/// its process. It has cache lines of its own, so that no row depends on which object the allocator puts beside it.
///
/// SAFETY: it is shared without a lock on purpose: each row adds to it only under the exclusion that the row measures (a
/// serial queue, a barrier), so a runtime that breaks the exclusion shows a wrong sum.
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

/// One counter for each index, for items that run in any order and at the same time. Each item touches only its own
/// slot, so counting needs no atomics.
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

  /// Of a row that makes more than a few.
  func free() { base.deallocate() }

  /// Returns how many slots were marked exactly once since the last call, and clears them.
  func takeMarkedOnce() -> Int {
    var once = 0
    for index in 0..<count {
      if base[index] == 1 { once += 1 }
      base[index] = 0
    }
    return once
  }
}
