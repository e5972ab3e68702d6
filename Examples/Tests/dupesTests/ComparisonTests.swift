import ExampleSupport
import TestSupport
import Testing

@testable import dupes

@Suite struct ComparisonTests {
  @Test func equalFilesAreFoundAcrossDirectories() async {
    let tree = TemporaryTree()
    tree.directory("a")
    tree.directory("a/deep")
    tree.file("one", "same".bytes)
    tree.file("a/two", "same".bytes)
    tree.file("a/deep/three", "same".bytes)
    tree.file("a/other", "else".bytes)
    let outcome = await search([tree.root])
    #expect(outcome.sets(under: tree) == [["a/deep/three", "a/two", "one"]])
    #expect(outcome.skipped.isEmpty)
    #expect(outcome.fileCount == 4)
    #expect(outcome.cancellation == nil)
  }

  /// Sizes on both sides of each window's border.
  @Test(arguments: [1, 2, 4096, 16383, 16384, 16385, 278_527, 278_528, 278_529, 3_000_001])
  func oneOtherByteTellsFilesApart(size: Int) async {
    let tree = TemporaryTree()
    let content = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    tree.file("a", content)
    tree.file("b", content)
    for (name, place) in [("first", 0), ("middle", size / 2), ("last", size - 1)] {
      var other = content
      other[place] ^= UInt8(name.utf8.count)
      tree.file(name, other)
    }
    let outcome = await search([tree.root])
    #expect(outcome.sets(under: tree) == [["a", "b"]])
  }

  /// More files of one size than are compared directly: the hash parts them first, in parallel.
  @Test func aLargeCrowdOfOneSize() async {
    let tree = TemporaryTree()
    var expected: [[String]] = []
    for content in 0..<100 {
      // Four files each: alike in the first window (half of the crowd), different in the last byte.
      var bytes = Bytes(repeating: UInt8(content % 2), count: 20_000)
      bytes[19_999] = UInt8(content)
      let names = (0..<4).map { String(1000 + content * 4 + $0) }
      for name in names { tree.file(name, bytes) }
      expected.append(names)
    }
    let outcome = await search([tree.root])
    #expect(outcome.sets(under: tree) == expected)
  }

  @Test func aLargeFileInManyWindows() async {
    let tree = TemporaryTree()
    let size = 64 << 20
    for name in ["a", "b", "c"] { tree.sparseFile(name, size: size) }
    tree.file("d", Bytes(repeating: 0, count: size - 1) + [1])
    let outcome = await search([tree.root])
    #expect(outcome.sets(under: tree) == [["a", "b", "c"]])
    #expect(outcome.sets.first?.size == Int64(size))
  }

  @Test func emptyAndSmallFilesAreLeftOutUnlessAskedFor() async {
    let tree = TemporaryTree()
    for name in ["a", "b"] {
      tree.file("empty-\(name)", [])
      tree.file("small-\(name)", "xy".bytes)
      tree.file("large-\(name)", "abcdefgh".bytes)
    }
    let plain = await search([tree.root])
    #expect(plain.sets(under: tree) == [["large-a", "large-b"], ["small-a", "small-b"]])
    let empty = await search([tree.root]) { $0.minimumSize = 0 }
    #expect(empty.sets(under: tree).count == 3)
    #expect(empty.sets(under: tree).first == ["empty-a", "empty-b"])
    let large = await search([tree.root]) { $0.minimumSize = 3 }
    #expect(large.sets(under: tree) == [["large-a", "large-b"]])
  }

  @Test func hardLinksAreOneFile() async {
    let tree = TemporaryTree()
    tree.file("a", "content".bytes)
    tree.hardLink("b", to: "a")
    tree.file("c", "content".bytes)
    tree.file("lonely", "alone!!".bytes)
    tree.hardLink("lonely-too", to: "lonely")
    let outcome = await search([tree.root])
    #expect(outcome.sets(under: tree) == [["a=b", "c"]])
    #expect(outcome.waste.files == 1)
    #expect(outcome.fileCount == 5)
  }

  @Test func symbolicLinksAreFollowedAsRootsOnly() async {
    let outside = TemporaryTree()
    outside.file("a", "content".bytes)
    outside.symbolicLink("up", to: "..")
    let tree = TemporaryTree()
    tree.file("b", "content".bytes)
    tree.symbolicLink("c", to: "b")
    tree.symbolicLink("root", to: outside.root)
    #expect(await search([tree.root]).sets(under: tree) == [])
    #expect(await search([tree.path("root"), tree.root]).sets(under: tree) == [["b", "root/a"]])
  }

  @Test func overlappingRootsAreReadOnce() async {
    let tree = TemporaryTree()
    tree.directory("sub")
    tree.file("sub/a", "content".bytes)
    let outcome = await search([tree.path("sub"), tree.root, tree.root + "/sub/../sub"])
    #expect(outcome.fileCount == 1)
    #expect(outcome.sets.isEmpty)
  }

  /// Random trees against the obvious answer: a dictionary by content.
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func randomTreesAgreeWithADictionary(seed: UInt64) async {
    var random = SplitMix(state: seed)
    let tree = TemporaryTree()
    var byContent: [Bytes: [String]] = [:]
    var directories = [""]
    for number in 0..<400 {
      if random.next() % 8 == 0 {
        let name = "\(directories.randomElement(using: &random)!)d\(number)"
        tree.directory(name)
        directories.append(name + "/")
      }
      let size = [1, 3, 100, 16_384, 20_000].randomElement(using: &random)!
      var content = Bytes(repeating: UInt8(random.next() % 2), count: size)
      content[Int(random.next() % UInt64(size))] = UInt8(random.next() % 3)
      let name = "\(directories.randomElement(using: &random)!)f\(number)"
      tree.file(name, content)
      byContent[content, default: []].append(name)
    }
    let order: (String, String) -> Bool = { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    let expected = byContent.values.filter { $0.count > 1 }.map { $0.sorted(by: order) }
      .sorted { order($0[0], $1[0]) }
    let outcome = await search([tree.root])
    #expect(outcome.sets(under: tree) == expected, "seed \(seed)")
    #expect(outcome.fileCount == 400, "seed \(seed)")
  }
}

/// A small generator of random numbers that a seed repeats.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// Runs a search in this process.
///
/// - Parameter between: runs after the walk and before the comparison, while nothing else runs.
func search(
  _ roots: [String], _ configure: (inout Options) -> Void = { _ in },
  between: @escaping @Sendable (Search) -> Void = { _ in }
) async -> Outcome {
  var options = Options()
  options.roots = roots.map(\.bytes)
  configure(&options)
  let search = Search(options)
  return await withCheckedContinuation { continuation in
    search.startWalk(thenOn: .global()) {
      between(search)
      search.startComparison(completionQueue: .global()) { continuation.resume(returning: $0) }
    }
  }
}

extension Outcome {
  /// The sets as strings, without the root: each file as its names joined by `=`.
  func sets(under tree: TemporaryTree) -> [[String]] {
    sets.map { set in
      set.files.map { names in
        names.map { String(decoding: $0.dropFirst(tree.root.utf8.count + 1), as: UTF8.self) }
          .joined(separator: "=")
      }
    }
  }

  /// The skipped paths, without the root.
  func skipped(under tree: TemporaryTree) -> [String] {
    skipped.map { String(decoding: $0.path.dropFirst(tree.root.utf8.count + 1), as: UTF8.self) }
  }
}

extension String {
  var bytes: Bytes { Bytes(utf8) }
}
