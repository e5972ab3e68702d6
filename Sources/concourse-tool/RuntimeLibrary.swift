/// The libdispatch.so that programs are switched to.
struct RuntimeLibrary {
  var path: String
  var image: ElfImage
  /// Whether it is Concourse's, which takes itself out of the environment again.
  var isOwn: Bool

  /// Why there is none, in words.
  struct Failure: Error, Equatable {
    var reason: String
  }

  /// The name of the section by which the library is known; see CConcoursePreload.
  static let mark = ".note.concourse"

  /// - Parameters:
  ///   - chosen: the path that the user gave.
  ///   - command: the path of the `concourse` command.
  static func find(chosen: String?, command: String) throws(Failure) -> RuntimeLibrary {
    if let chosen {
      guard let path = FilePath.resolved(chosen) else {
        throw Failure(reason: "the library \(chosen) cannot be used: \(describe(error: lastError()))")
      }
      return try RuntimeLibrary(path: path)
    }
    let directory = FilePath.directory(of: command)
    let places = ["../lib", "../lib/concourse", "."].map { "\(directory)/\($0)/\(ProgramCheck.dispatchName)" }
    for place in places {
      // Beside the command may as well lie the toolchain's library.
      if let path = FilePath.resolved(place), let library = try? RuntimeLibrary(path: path), library.isOwn {
        return library
      }
    }
    throw Failure(
      reason: "Concourse's \(ProgramCheck.dispatchName) is not at \(places.joined(separator: ", nor at ")); "
        + "say where it is: --library PATH")
  }

  private init(path: String) throws(Failure) {
    do {
      image = try ElfImage(path: path)
    } catch {
      let reason =
        switch error {
        case .unreadable(let number): describe(error: number)
        case .notElf: "it is no ELF file"
        case .damaged(let what): what
        case .foreign(let target): "it is made for another processor (\(target.name))"
        }
      throw Failure(reason: "the library \(path) cannot be used: \(reason)")
    }
    guard image.soname == ProgramCheck.dispatchName else {
      throw Failure(
        reason:
          "the library \(path) cannot be used: it calls itself \(image.soname ?? "nothing"), and programs ask "
          + "for \(ProgramCheck.dispatchName)")
    }
    guard Self.canBeListed(path) else {
      throw Failure(
        reason:
          "the library's path, \(path), has a space, a colon or a dollar sign in it, and so cannot be told to "
          + "the loader; put the library elsewhere and use --library")
    }
    self.path = path
    isOwn = image.hasSection(named: Self.mark)
  }

  /// Whether the loader's list can carry a path: it divides the list at the first two characters, and replaces what
  /// follows the third.
  private static func canBeListed(_ path: String) -> Bool {
    !path.utf8.contains { " :$".utf8.contains($0) }
  }

  /// The libraries that have to be loaded by their paths, together with this one, since the loader would not find
  /// them for it.
  ///
  /// They are looked for beside the library, in LD_LIBRARY_PATH, and among those of the program as it was built.
  /// - Parameters:
  ///   - search: the search of a process with the command's environment.
  ///   - program: the program, if it could be read.
  ///   - children: whether processes are switched whose programs, working directories and LD_LIBRARY_PATH are not
  ///     known.
  func companions(
    in search: LibrarySearch, for program: ElfImage?, children: Bool
  ) throws(Failure) -> [String] {
    var certain = search
    if children { certain.libraryPath = [] }
    var companions: [ElfImage] = []
    var given: Set<String> = [ProgramCheck.dispatchName]
    var others: [String: ElfImage]?
    while true {
      let missing = ([image] + companions).lazy.flatMap { certain.closure(of: $0).missing }
      guard let first = missing.first(where: { !given.contains($0.name) }) else { break }
      let known = others ?? libraries(in: search, of: program)
      others = known
      guard let found = beside(first.name) ?? known[first.name] else {
        throw Failure(
          reason:
            "the library \(path) cannot be loaded: \(first.neededBy) needs \(first.name), which is neither beside "
            + "it nor in the loader's directories; put it there, or name its directory in LD_LIBRARY_PATH")
      }
      companions.append(found)
      given.insert(first.name)
    }
    var paths: [String] = []
    for companion in companions {
      guard let path = FilePath.resolved(companion.path), Self.canBeListed(path) else {
        throw Failure(
          reason:
            "the library \(self.path) cannot be loaded: the path of what it needs, \(companion.path), has a space, a "
            + "colon or a dollar sign in it, and so cannot be told to the loader; put a copy of it beside the library"
        )
      }
      paths.append(path)
    }
    return paths
  }

  /// A library in the same directory. The loader takes a file from its list for another one by the soname only.
  private func beside(_ name: String) -> ElfImage? {
    guard let found = try? ElfImage(path: FilePath.directory(of: path) + "/" + name),
      found.target == image.target, found.soname == name
    else { return nil }
    return found
  }

  /// What the loader finds for this library with LD_LIBRARY_PATH, and what it finds for the program, by soname.
  private func libraries(in search: LibrarySearch, of program: ElfImage?) -> [String: ElfImage] {
    var libraries: [String: ElfImage] = [:]
    for root in [image, program].compactMap({ $0 }) {
      for loaded in search.closure(of: root).loaded where loaded.image.target == image.target {
        if let soname = loaded.image.soname, libraries[soname] == nil { libraries[soname] = loaded.image }
      }
    }
    return libraries
  }
}
