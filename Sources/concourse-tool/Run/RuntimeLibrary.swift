/// The libdispatch.so that replaces a program's own.
struct RuntimeLibrary {
  var path: String
  var image: ElfImage
  /// Whether it is Concourse's, which removes itself from the environment.
  var isConcourse: Bool
  /// Concourse's version, if the library has it.
  var version: String?

  /// Why no library can be used.
  struct Failure: Error, Equatable {
    var reason: String
  }

  /// The section that identifies the library; see CConcoursePreload, and `inspection.c` in CConcourse.
  static let sectionName = ".note.concourse"

  /// The version and the path, for messages.
  var description: String { (version.map { "Concourse \($0), " } ?? "") + path }

  /// - Parameters:
  ///   - chosen: The path that the user gave.
  ///   - command: The path of the `concourse` command.
  ///   - file: The library's file, where the user has not chosen one.
  static func find(
    chosen: String?, command: String, file: String = ProgramCheck.dispatchName
  ) throws(Failure) -> RuntimeLibrary {
    if let chosen {
      guard let path = FilePath.resolved(chosen) else {
        throw Failure(reason: "the library \(chosen) cannot be used: \(describe(error: lastError()))")
      }
      return try RuntimeLibrary(path: path)
    }
    let directory = FilePath.directory(of: command)
    let places = ["../lib", "../lib/concourse", "../lib/\(LibrarySearch.triplet)/concourse", "."].map {
      "\(directory)/\($0)/\(file)"
    }
    for place in places {
      // The toolchain's library may lie there too.
      if let path = FilePath.resolved(place), let library = try? RuntimeLibrary(path: path),
        library.isConcourse
      {
        return library
      }
    }
    throw Failure(
      reason: "Concourse's \(file) is not at \(places.joined(separator: ", nor at ")); "
        + "Scripts/install of Concourse puts it there, or give its path with --library PATH")
  }

  private init(path: String) throws(Failure) {
    do {
      image = try ElfImage(path: path)
    } catch {
      let reason =
        switch error {
        case .unreadable(let number): describe(error: number)
        case .notElf: "it is not an ELF file"
        case .damaged(let what): what
        case .foreign(let target): "it is built for another processor (\(target.name))"
        }
      throw Failure(reason: "the library \(path) cannot be used: \(reason)")
    }
    guard image.soname == ProgramCheck.dispatchName else {
      throw Failure(
        reason:
          "the library \(path) cannot be used: \(image.soname.map { "its soname is \($0)" } ?? "it has no soname"), "
          + "but programs need \(ProgramCheck.dispatchName)")
    }
    guard Self.fitsPreloadList(path) else {
      throw Failure(
        reason:
          "the library's path, \(path), contains a space, a colon or a dollar sign, which LD_PRELOAD cannot carry; "
          + "move the library and use --library")
    }
    self.path = path
    let notes = image.section(named: Self.sectionName)
    isConcourse = notes != nil
    version = notes?.concourseVersion
  }

  /// Whether LD_PRELOAD can carry the path. The loader splits the list at spaces and colons, and expands words after a
  /// dollar sign.
  private static func fitsPreloadList(_ path: String) -> Bool {
    !path.utf8.contains { " :$".utf8.contains($0) }
  }

  /// The dependencies that must be loaded by path together with this library, because the loader would not find them.
  ///
  /// They are searched beside the library, in LD_LIBRARY_PATH, and among the program's own libraries.
  /// - Parameters:
  ///   - search: A search with the command's environment.
  ///   - program: The program, if it could be read.
  ///   - children: Whether children are switched too. Their programs, working directories and LD_LIBRARY_PATH are
  ///     unknown.
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
      guard let found = libraryBeside(first.name) ?? known[first.name] else {
        throw Failure(
          reason:
            "the library \(path) cannot be loaded: \(first.neededBy) needs \(first.name), which is not in the "
            + "library's or the loader's directories; put it there, or add its directory to LD_LIBRARY_PATH")
      }
      companions.append(found)
      given.insert(first.name)
    }
    var paths: [String] = []
    for companion in companions {
      guard let path = FilePath.resolved(companion.path), Self.fitsPreloadList(path) else {
        throw Failure(
          reason:
            "the library \(self.path) cannot be loaded: the path of its dependency, \(companion.path), contains a "
            + "space, a colon or a dollar sign, which LD_PRELOAD cannot carry; put a copy of it beside the library"
        )
      }
      paths.append(path)
    }
    return paths
  }

  /// The library of that name in the same directory. Its soname must match, because the loader compares sonames only.
  private func libraryBeside(_ name: String) -> ElfImage? {
    guard let found = try? ElfImage(path: FilePath.directory(of: path) + "/" + name),
      found.target == image.target, found.soname == name
    else { return nil }
    return found
  }

  /// What the loader finds for this library with LD_LIBRARY_PATH, and for the program, by soname.
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
