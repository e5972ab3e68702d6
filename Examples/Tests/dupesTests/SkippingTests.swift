import DupesKit
import Glibc
import Testing

/// What cannot be read is named and left out; the rest is found all the same.
@Suite struct SkippingTests {
  @Test func aFileThatVanishesAfterTheWalk() async {
    let tree = TemporaryTree()
    for name in ["a", "b", "gone"] { tree.file(name, "content".bytes) }
    let outcome = await search([tree.root], between: { #expect(unlink(tree.path("gone")) == 0) })
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
      between: {
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
      between: {
        // The kernel's clock for files ticks every few milliseconds: write until it has moved on.
        let before = tree.changeTime("changed")
        repeat { tree.file("changed", newContent.bytes) } while tree.changeTime("changed") == before
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
      between: {
        tree.file("new", "content".bytes)
        #expect(rename(tree.path("new"), tree.path("swapped")) == 0)
        // A pipe must neither be taken for the file nor make the search hang.
        #expect(unlink(tree.path("pipe")) == 0)
        #expect(mkfifo(tree.path("pipe"), 0o644) == 0)
      })
    #expect(outcome.sets(under: tree) == [["a", "b"]])
    #expect(outcome.skipped(under: tree) == ["pipe", "swapped"])
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
    // Nobody else can remove so deep a tree by its path either.
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
    let cancellation = Cancellation()
    cancellation.cancel()
    let outcome = await search([tree.root], cancellation: cancellation)
    #expect(!outcome.isComplete)
    #expect(outcome.sets(countingHardLinks: false).isEmpty)
  }

  @Test func aSearchCancelledBetweenItsStagesStillCompletes() async {
    let tree = TemporaryTree()
    tree.file("a", "content".bytes)
    tree.file("b", "content".bytes)
    let cancellation = Cancellation()
    let search = Search(options([tree.root]) { _ in }, cancellation: cancellation)
    let outcome = await withCheckedContinuation { continuation in
      search.startWalk(thenOn: .global()) {
        cancellation.cancel()
        search.startComparison(completionQueue: .global()) { continuation.resume(returning: $0) }
      }
    }
    #expect(!outcome.isComplete)
    #expect(outcome.sets(countingHardLinks: false).isEmpty)
    #expect(outcome.fileCount == 2)
  }
}
