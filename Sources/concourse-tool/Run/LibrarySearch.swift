/// Finds a program's libraries in the loader's places and in the loader's order.
///
/// It skips the processor-specific subdirectories (glibc-hwcaps), whose libraries have the same dependencies as the
/// generic ones.
struct LibrarySearch {
  /// The directories of LD_LIBRARY_PATH.
  var libraryPath: [String] = []
  var cache = LoaderCache.empty
  /// The loader's own directories.
  var defaults: [String] = []

  /// An object, and the first object that needed it.
  struct Loaded {
    var image: ElfImage
    /// The name in the other object's dependencies; for the program, its path.
    var name: String
    var parent: Int?
  }

  /// A program or library with all its dependencies.
  struct Closure {
    var loaded: [Loaded]
    /// Names without a file, each with the object that needs it.
    var missing: [(name: String, neededBy: String)] = []

    /// The names of the objects on the shortest dependency path to `name`, which comes last. The first object is left
    /// out. nil if no object needs `name`.
    func path(to name: String) -> [String]? {
      guard var index = loaded.firstIndex(where: { $0.image.needed.contains(name) }) else { return nil }
      var path = [name]
      while let parent = loaded[index].parent {
        path.append(loaded[index].name)
        index = parent
      }
      return path.reversed()
    }
  }

  /// Visits each library once, breadth first, so cycles end.
  ///
  /// - Parameter omitted: A library that is not searched, nor are its dependencies.
  func closure(of image: ElfImage, omitting omitted: String? = nil) -> Closure {
    var closure = Closure(loaded: [Loaded(image: image, name: image.path, parent: nil)])
    var known: Set<String> = []
    if let omitted { known.insert(omitted) }
    if let soname = image.soname { known.insert(soname) }
    var index = 0
    while index < closure.loaded.count {
      for name in closure.loaded[index].image.needed where known.insert(name).inserted {
        if let found = find(name, for: index, in: closure.loaded) {
          if let soname = found.soname { known.insert(soname) }
          closure.loaded.append(Loaded(image: found, name: name, parent: index))
        } else {
          closure.missing.append((name, closure.loaded[index].name))
        }
      }
      index += 1
    }
    return closure
  }

  private func find(_ name: String, for index: Int, in loaded: [Loaded]) -> ElfImage? {
    for path in candidates(name, for: index, in: loaded) {
      // Like the loader, skips files for other platforms.
      if let image = try? ElfImage(path: path), image.target == loaded[0].image.target { return image }
    }
    return nil
  }

  private func candidates(_ name: String, for index: Int, in loaded: [Loaded]) -> [String] {
    let image = loaded[index].image
    guard !name.utf8.contains(UInt8(ascii: "/")) else { return expanded(name, of: image) }
    var directories: [String] = []
    if image.runpath.isEmpty {
      // The DT_RPATH of an object also applies to the dependencies of its libraries.
      var ancestorIndex: Int? = index
      while let current = ancestorIndex {
        let ancestor = loaded[current].image
        if ancestor.runpath.isEmpty { directories += ancestor.rpath.flatMap { expanded($0, of: ancestor) } }
        ancestorIndex = loaded[current].parent
      }
    }
    directories += libraryPath
    directories += image.runpath.flatMap { expanded($0, of: image) }
    let listed = directories.map { ($0.isEmpty ? "." : $0) + "/" + name }
    return listed + cache.paths(of: name) + defaults.map { $0 + "/" + name }
  }

  /// The path with the loader's tokens expanded. The meaning of `$LIB` depends on the system.
  private func expanded(_ path: String, of image: ElfImage) -> [String] {
    guard path.utf8.contains(UInt8(ascii: "$")) else { return [path] }
    let processor = image.target.machine == 183 ? "aarch64" : "x86_64"
    let path = path.replacing(word: "PLATFORM", with: processor)
      .replacing(word: "ORIGIN", with: FilePath.directory(of: FilePath.resolved(image.path) ?? image.path))
    guard path.utf8.contains(UInt8(ascii: "$")) else { return [path] }
    return ["lib/\(processor)-linux-gnu", "lib64", "lib"].map { path.replacing(word: "LIB", with: $0) }
  }
}

extension String {
  /// Replaces `$word` and `${word}`.
  fileprivate func replacing(word: String, with text: String) -> String {
    var result = ""
    var rest = self[...]
    while let dollar = rest.firstIndex(of: "$") {
      result += rest[..<dollar]
      rest = rest[dollar...]
      if let form = ["${\(word)}", "$\(word)"].first(where: { rest.utf8.starts(with: $0.utf8) }) {
        result += text
        rest = rest.dropFirst(form.count)
      } else {
        result += "$"
        rest = rest.dropFirst()
      }
    }
    return result + rest
  }
}
