import CExtendedAttributes
import Glibc

/// Tells whether a program will run on another libdispatch.so when the loader is told to load that first.
struct ProgramCheck {
  static let dispatchName = "libdispatch.so"

  /// What the library is made for.
  var target: ElfTarget
  var search: LibrarySearch

  enum Verdict: Equatable {
    /// The libraries on the way to libdispatch.so, which is the last.
    case switchable(way: [String])
    case withoutDispatch
    /// The program brings the functions with it, and its own come first.
    case ownDispatch(isConcourse: Bool)
    case staticallyLinked
    case privileged(Privilege)
    case script(interpreter: String)
    case notProgram
    case unreadable(Int32)
    case damaged(String)
    case otherMachine(ElfTarget)
    case otherCLibrary(loader: String)
  }

  enum Privilege: String {
    case setuid, setgid, capabilities
  }

  func verdict(on path: String) -> Verdict {
    if let privilege = Self.privilege(of: path) { return .privileged(privilege) }
    let program: ElfImage
    do {
      program = try ElfImage(path: path)
    } catch {
      switch error {
      case .unreadable(let number): return .unreadable(number)
      case .damaged(let what): return .damaged(what)
      case .foreign(let target): return .otherMachine(target)
      case .notElf:
        if let interpreter = Self.interpreter(ofScript: path) { return .script(interpreter: interpreter) }
        return .notProgram
      }
    }
    guard program.target == target else { return .otherMachine(program.target) }
    guard let loader = program.interpreter else { return .staticallyLinked }
    // Other C libraries (musl) have other loaders, and cannot load what is made for glibc.
    let loaderName = FilePath.lastPart(of: loader)
    guard loaderName.utf8.starts(with: "ld-linux".utf8) || loaderName.utf8.starts(with: "ld64".utf8) else {
      return .otherCLibrary(loader: loader)
    }
    if Self.definesDispatch(program, in: .dynamic) {
      return .ownDispatch(isConcourse: Self.isConcourse(program))
    }
    if let way = search.closure(of: program, omitting: Self.dispatchName).way(to: Self.dispatchName) {
      return .switchable(way: way)
    }
    if Self.definesDispatch(program, in: .full) {
      return .ownDispatch(isConcourse: Self.isConcourse(program))
    }
    return .withoutDispatch
  }

  /// Why the loader would not listen to the environment. The bits count whoever runs the program: under its
  /// owner nothing changes hands, but a program that works for one user and is refused to another is no help.
  private static func privilege(of path: String) -> Privilege? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    if status.st_mode & S_ISUID != 0 { return .setuid }
    // Without the group's right to run it, the bit means another thing.
    if status.st_mode & S_ISGID != 0 && status.st_mode & S_IXGRP != 0 { return .setgid }
    return getxattr(path, "security.capability", nil, 0) > 0 ? .capabilities : nil
  }

  /// The program that a script's first line names.
  private static func interpreter(ofScript path: String) -> String? {
    guard let file = FileBytes(path: path),
      let head = file.read(at: 0, count: Int(min(file.size, 256))), head.starts(with: "#!".utf8)
    else { return nil }
    let line = head.dropFirst(2).prefix { $0 != UInt8(ascii: "\n") }
    let words = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    return words.first.map { String(decoding: $0, as: UTF8.self) }
  }

  private static func definesDispatch(_ image: ElfImage, in table: ElfImage.SymbolTable) -> Bool {
    let name = Array("dispatch_async_f".utf8)
    return image.definesFunction(in: table) { $0.elementsEqual(name) }
  }

  private static func isConcourse(_ image: ElfImage) -> Bool {
    // How the names of the module ConcourseRuntime begin in machine code.
    let prefix = Array("$s16ConcourseRuntime".utf8)
    return image.definesFunction(in: .full) { $0.starts(with: prefix) }
      || image.definesFunction(in: .dynamic) { $0.starts(with: prefix) }
  }
}

extension ProgramCheck.Verdict {
  var isSwitchable: Bool {
    switch self {
    case .switchable: true
    case .withoutDispatch, .ownDispatch, .staticallyLinked, .privileged, .script, .notProgram, .unreadable,
      .damaged, .otherMachine, .otherCLibrary:
      false
    }
  }

  /// Whether what the program starts may be switched although it is not itself: the environment goes
  /// through it.
  var passesOn: Bool {
    switch self {
    case .switchable, .withoutDispatch, .ownDispatch, .staticallyLinked, .script: true
    case .privileged, .notProgram, .unreadable, .damaged, .otherMachine, .otherCLibrary: false
    }
  }

  /// What was found, and what can be done about it, as the end of a sentence that begins with the program.
  var description: String {
    switch self {
    case .switchable(let way):
      way.count == 1
        ? "can be switched: it needs \(way[0])"
        : "can be switched: it needs \(way.last!) by way of \(way.dropLast().joined(separator: ", "))"
    case .withoutDispatch:
      "does not use libdispatch.so, nor does a library that it names; should it load one later, use --force, "
        + "and for what it starts, --children"
    case .ownDispatch(isConcourse: true):
      "has Concourse linked into it already; run it as it is"
    case .ownDispatch(isConcourse: false):
      "has a libdispatch of its own linked into it; build it against libdispatch.so, or against Concourse"
    case .staticallyLinked:
      "is statically linked, so it loads no library; link it dynamically, or build it against Concourse"
    case .privileged(.setuid):
      "is setuid, and the loader ignores the environment of such programs; run a copy without that bit"
    case .privileged(.setgid):
      "is setgid, and the loader ignores the environment of such programs; run a copy without that bit"
    case .privileged(.capabilities):
      "has file capabilities, and the loader ignores the environment of such programs; run a copy without them"
    case .script(let interpreter):
      "is a script for \(interpreter); name the program that it starts, or switch all that it starts: --children"
    case .notProgram:
      "is neither an ELF program nor a script that names its interpreter; name the program itself"
    case .unreadable(let error):
      "cannot be examined (\(describe(error: error))); if it does use libdispatch.so, run it with --force"
    case .damaged(let what):
      "is no proper ELF program (\(what)); build or install it anew"
    case .otherMachine(let target):
      "is made for another processor (\(target.name)); use a libdispatch.so for that one: --library"
    case .otherCLibrary(let loader):
      "is made for another C library (its loader is \(loader)); build it for glibc"
    }
  }
}
