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
    // What the loader divides the list of libraries at, and what it replaces in it.
    guard !path.utf8.contains(where: { " :$".utf8.contains($0) }) else {
      throw Failure(
        reason:
          "the library's path, \(path), has a space, a colon or a dollar sign in it, and so cannot be told to "
          + "the loader; put the library elsewhere and use --library")
    }
    self.path = path
    isOwn = image.hasSection(named: Self.mark)
  }

  /// What the loader would not find for the library in a process of `program`, in words; nil if nothing.
  func wants(in search: LibrarySearch, beside program: ElfImage?) -> String? {
    let own = search.closure(of: image)
    guard !own.missing.isEmpty else { return nil }
    // What the program loads itself need not be found again; its own libdispatch.so is not loaded any more.
    let loaded = program.map { search.closure(of: $0, omitting: ProgramCheck.dispatchName).loaded } ?? []
    let present = Set(loaded.flatMap { [$0.name, $0.image.soname ?? $0.name] })
    guard let first = own.missing.first(where: { !present.contains($0.name) }) else { return nil }
    return
      "\(first.neededBy) needs \(first.name), which is in none of the loader's directories; install the Swift "
      + "runtime libraries, or name their directory in LD_LIBRARY_PATH"
  }
}
