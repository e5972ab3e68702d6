import DupesKit
import Testing

@Suite struct LinkTests {
  @Test func hardLinksAreOneFile() async {
    let tree = TemporaryTree()
    tree.file("a", "content".bytes)
    tree.hardLink("b", to: "a")
    tree.file("c", "content".bytes)
    tree.file("lonely", "alone!!".bytes)
    tree.hardLink("lonely-too", to: "lonely")
    let outcome = await search([tree.root])
    #expect(outcome.sets(under: tree) == [["a=b", "c"]])
    #expect(outcome.sets(countingHardLinks: false).waste.files == 1)
  }

  @Test func hardLinksCountWhenAskedFor() async {
    let tree = TemporaryTree()
    tree.file("a", "content".bytes)
    tree.hardLink("b", to: "a")
    tree.file("c", "content".bytes)
    tree.file("lonely", "alone!!".bytes)
    tree.hardLink("lonely-too", to: "lonely")
    let outcome = await search([tree.root])
    #expect(
      outcome.sets(under: tree, countingHardLinks: true) == [["a", "b", "c"], ["lonely", "lonely-too"]])
  }

  @Test func symbolicLinksAreNotFollowedUnlessAskedFor() async {
    let tree = TemporaryTree()
    tree.file("a", "content".bytes)
    tree.file("b", "content".bytes)
    tree.symbolicLink("c", to: "a")
    let plain = await search([tree.root])
    #expect(plain.sets(under: tree) == [["a", "b"]])
    let follow = await search([tree.root]) { $0.follow = true }
    #expect(follow.sets(under: tree) == [["a=c", "b"]])
  }

  /// Removing the "duplicate" of a symbolic link could leave a link to nothing.
  @Test func aFollowedLinkIsNeverADuplicateOfItsTarget() async {
    let tree = TemporaryTree()
    tree.file("a", "content".bytes)
    tree.symbolicLink("b", to: "a")
    let alone = await search([tree.root]) { $0.follow = true }
    #expect(alone.sets(under: tree, countingHardLinks: true) == [])
    tree.hardLink("c", to: "a")
    let linked = await search([tree.root]) { $0.follow = true }
    #expect(linked.sets(under: tree, countingHardLinks: true) == [["a=b", "c"]])
  }

  @Test func cyclesOfSymbolicLinksEnd() async {
    let tree = TemporaryTree()
    tree.directory("x")
    tree.directory("x/y")
    tree.file("x/y/a", "content".bytes)
    tree.file("b", "content".bytes)
    tree.symbolicLink("x/y/up", to: "../..")
    tree.symbolicLink("x/self", to: "self")
    tree.symbolicLink("loop", to: "x/y")
    let outcome = await search([tree.root]) { $0.follow = true }
    // The real path wins over the one through `loop`, in every run.
    #expect(outcome.sets(under: tree) == [["b", "x/y/a"]])
    #expect(outcome.skipped(under: tree) == ["x/self"])
  }

  @Test func linksToDirectoriesOutsideAreFollowedInAFixedOrder() async {
    let outside = TemporaryTree()
    outside.file("file", "content".bytes)
    let tree = TemporaryTree()
    tree.file("here", "content".bytes)
    tree.symbolicLink("z", to: outside.root)
    tree.symbolicLink("k", to: outside.root)
    for _ in 0..<5 {
      let outcome = await search([tree.root]) { $0.follow = true }
      #expect(outcome.sets(under: tree) == [["here", "k/file"]])
    }
  }

  @Test func overlappingRootsAreReadOnce() async {
    let tree = TemporaryTree()
    tree.directory("sub")
    tree.file("sub/a", "content".bytes)
    let outcome = await search([tree.path("sub"), tree.root, tree.root + "/sub/../sub"])
    #expect(outcome.fileCount == 1)
    #expect(outcome.sets(under: tree, countingHardLinks: true) == [])
  }
}
