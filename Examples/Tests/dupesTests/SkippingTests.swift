import ExampleSupport
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import dupes

/// What cannot be read is named and left out, and the rest is found.
@Suite struct SkippingTests {
  @Test func aFileThatVanishesAfterTheWalk() async {
    let tree = TemporaryTree()
    for name in ["a", "b", "gone"] { tree.file(name, "content".bytes) }
    let outcome = await search([tree.root], between: { _ in #expect(unlink(tree.path("gone")) == 0) })
    #expect(outcome.sets(under: tree) == [["a", "b"]])
    #expect(outcome.skipped(under: tree) == ["gone"])
    #expect(outcome.skipped.first?.reason == .system(errno: ENOENT))
  }

  @Test func aDirectoryThatVanishesAfterTheWalk() async {
    let tree = TemporaryTree()
    tree.directory("dir")
    for name in ["a", "b", "dir/c"] { tree.file(name, "content".bytes) }
    let outcome = await search(
      [tree.root],
      between: { _ in
        #expect(unlink(tree.path("dir/c")) == 0)
        #expect(rmdir(tree.path("dir")) == 0)
      })
    #expect(outcome.sets(under: tree) == [["a", "b"]])
    #expect(outcome.skipped(under: tree) == ["dir/c"])
  }

  @Test(arguments: ["CONTENT", "content and more", "cont"])
  func aFileThatChangesAfterTheWalk(newContent: String) async {
    let tree = TemporaryTree()
    for name in ["a", "b", "changed"] { tree.file(name, "content".bytes) }
    let outcome = await search(
      [tree.root],
      between: { _ in
        // The kernel's clock for files ticks every few milliseconds: write until it has moved on.
        let before = changeTime(of: tree.path("changed"))
        repeat { tree.file("changed", newContent.bytes) } while changeTime(of: tree.path("changed")) == before
      })
    #expect(outcome.sets(under: tree) == [["a", "b"]])
    #expect(outcome.skipped(under: tree) == ["changed"])
    #expect(outcome.skipped.first?.reason == .changed)
  }

  @Test func anotherFileInAnOldPlace() async {
    let tree = TemporaryTree()
    for name in ["a", "b", "swapped", "pipe"] { tree.file(name, "content".bytes) }
    let outcome = await search(
      [tree.root],
      between: { _ in
        tree.file("new", "content".bytes)
        #expect(rename(tree.path("new"), tree.path("swapped")) == 0)
        // A pipe must neither be taken for the file nor make the search hang.
        #expect(unlink(tree.path("pipe")) == 0)
        #expect(mkfifo(tree.path("pipe"), 0o644) == 0)
      })
    #expect(outcome.sets(under: tree) == [["a", "b"]])
    #expect(outcome.skipped(under: tree) == ["pipe", "swapped"])
  }

  private func changeTime(of path: String) -> Int {
    var status = stat()
    #expect(stat(path, &status) == 0)
    return status.st_ctim.tv_sec * 1_000_000_000 + status.st_ctim.tv_nsec
  }

  @Test func rootsThatAreNoDirectories() async {
    let tree = TemporaryTree()
    tree.file("file", "content".bytes)
    let outcome = await search([tree.path("missing"), tree.path("file")])
    #expect(outcome.skipped.map(\.reason) == [.system(errno: ENOTDIR), .system(errno: ENOENT)])
  }

  /// Not even root can open a path longer than PATH_MAX.
  @Test func aPathTooLongForTheKernel() async {
    let tree = TemporaryTree()
    tree.file("a", "content".bytes)
    tree.file("b", "content".bytes)
    let name = String(repeating: "n", count: 250)
    var parent = open(tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    for _ in 0..<20 {
      #expect(mkdirat(parent, name, 0o755) == 0)
      let child = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      #expect(child >= 0)
      close(parent)
      parent = child
    }
    let outcome = await search([tree.root])
    #expect(outcome.sets(under: tree) == [["a", "b"]])
    #expect(outcome.skipped.map(\.reason) == [.system(errno: ENAMETOOLONG)])
    // The tree's own removal could not open so long a path either.
    for _ in 0..<20 {
      let above = openat(parent, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      close(parent)
      parent = above
      #expect(unlinkat(parent, name, AT_REMOVEDIR) == 0)
    }
    close(parent)
  }

  @Test func aSearchCancelledBeforeItStartsStillCompletes() async {
    let tree = TemporaryTree()
    tree.file("a", "content".bytes)
    tree.file("b", "content".bytes)
    var options = Options()
    options.roots = [tree.root.bytes]
    let search = Search(options)
    #expect(search.cancel(SIGINT))
    #expect(!search.cancel(SIGTERM))
    let outcome = await withCheckedContinuation { continuation in
      search.start(completionQueue: .global()) { continuation.resume(returning: $0) }
    }
    #expect(outcome.cancellation == SIGINT)
    #expect(outcome.sets.isEmpty)
  }

  @Test func aSearchCancelledBetweenItsStagesStillCompletes() async {
    let tree = TemporaryTree()
    tree.file("a", "content".bytes)
    tree.file("b", "content".bytes)
    let outcome = await search([tree.root], between: { _ = $0.cancel(SIGTERM) })
    #expect(outcome.cancellation == SIGTERM)
    #expect(outcome.sets.isEmpty)
    #expect(outcome.fileCount == 2)
  }
}

/// The bound for open descriptors.
@Suite struct DescriptorBudgetTests {
  @Test func theBudgetLeavesRoomBelowTheLimit() {
    var limit = rlimit()
    #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    let budget = DescriptorBudget(jobs: nil)
    #expect(budget.permits >= 1)
    #expect(budget.permits == 1 || UInt(budget.permits) + 16 <= UInt(limit.rlim_cur))
    #expect(DescriptorBudget(jobs: 3).permits == 3)
  }

  @Test(arguments: [1, 2, 5]) func neverMoreHoldersThanPermits(jobs: Int) {
    let budget = DescriptorBudget(jobs: jobs)
    let load = Load()
    // More work items than permits, on as many threads as the pool gives them.
    let group = DispatchGroup()
    for _ in 0..<32 {
      DispatchQueue.global().async(group: group) {
        for _ in 0..<100 { budget.withPermit { load.hold() } }
      }
    }
    group.wait()
    // ORDERING: relaxed; the group orders all work items before this.
    #expect(load.most.load(ordering: .relaxed) <= jobs)
    #expect(load.total.load(ordering: .relaxed) == 3200)
  }
}

/// How many hold a permit, the most at the same time, and how often it was held.
private final class Load: Sendable {
  let holders = Atomic<Int>(0)
  let most = Atomic<Int>(0)
  let total = Atomic<Int>(0)

  func hold() {
    // ORDERING: relaxed; each counter is read by itself.
    let now = holders.wrappingAdd(1, ordering: .relaxed).newValue
    most.max(now, ordering: .relaxed)
    total.wrappingAdd(1, ordering: .relaxed)
    holders.wrappingSubtract(1, ordering: .relaxed)
  }
}
