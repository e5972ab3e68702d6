import DupesKit

/// Runs a whole search in this process.
func search(
  _ roots: [String], cancellation: Cancellation = Cancellation(),
  _ configure: (inout Options) -> Void = { _ in }
) async -> Outcome {
  let search = Search(options(roots, configure), cancellation: cancellation)
  return await withCheckedContinuation { continuation in
    search.start(completionQueue: .global()) { continuation.resume(returning: $0) }
  }
}

/// Runs a search and calls `between` after the walk and before the comparison, while nothing else runs.
func search(
  _ roots: [String], between: @escaping @Sendable () -> Void, _ configure: (inout Options) -> Void = { _ in }
) async -> Outcome {
  let search = Search(options(roots, configure), cancellation: Cancellation())
  return await withCheckedContinuation { continuation in
    search.startWalk(thenOn: .global()) {
      between()
      search.startComparison(completionQueue: .global()) { continuation.resume(returning: $0) }
    }
  }
}

func options(_ roots: [String], _ configure: (inout Options) -> Void) -> Options {
  var options = Options()
  options.roots = roots.map(\.bytes)
  configure(&options)
  return options
}

extension Outcome {
  /// The sets as plain strings, without the root: each file as its names joined by `=`.
  func sets(under tree: TemporaryTree, countingHardLinks: Bool = false) -> [[String]] {
    sets(countingHardLinks: countingHardLinks).map { set in
      set.files.map { file in
        file.names.map { String(decoding: $0.dropFirst(tree.root.utf8.count + 1), as: UTF8.self) }
          .joined(separator: "=")
      }
    }
  }

  /// The skipped paths, without the root.
  func skipped(under tree: TemporaryTree) -> [String] {
    skipped.map { String(decoding: $0.path.dropFirst(tree.root.utf8.count + 1), as: UTF8.self) }
  }
}
