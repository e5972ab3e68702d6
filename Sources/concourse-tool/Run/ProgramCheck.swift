import CExtendedAttributes
import Glibc

/// Determines whether a program will use a libdispatch.so that LD_PRELOAD names.
struct ProgramCheck {
  static let dispatchName = "libdispatch.so"

  /// The library's platform.
  var target: ElfTarget
  var search: LibrarySearch

  enum Verdict: Equatable {
    /// The libraries on the dependency path to libdispatch.so, which comes last.
    case switchable(path: [String])
    case withoutDispatch
    /// The program contains the functions, which take precedence.
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
    // Other C libraries (musl) have other loaders, which cannot load libraries for glibc.
    let loaderName = FilePath.lastPart(of: loader)
    guard loaderName.utf8.starts(with: "ld-linux".utf8) || loaderName.utf8.starts(with: "ld64".utf8) else {
      return .otherCLibrary(loader: loader)
    }
    if let isConcourse = Self.ownDispatch(of: program, in: .dynamic) {
      return .ownDispatch(isConcourse: isConcourse)
    }
    if let path = search.closure(of: program, omitting: Self.dispatchName).path(to: Self.dispatchName) {
      return .switchable(path: path)
    }
    if let isConcourse = Self.ownDispatch(of: program, in: .full) {
      return .ownDispatch(isConcourse: isConcourse)
    }
    return .withoutDispatch
  }

  /// Why the loader would ignore the environment. The bits count even if the caller is the file's owner, so that the
  /// result is the same for every user.
  private static func privilege(of path: String) -> Privilege? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    if status.st_mode & S_ISUID != 0 { return .setuid }
    // Without group execute permission, the bit has another meaning.
    if status.st_mode & S_ISGID != 0 && status.st_mode & S_IXGRP != 0 { return .setgid }
    return getxattr(path, "security.capability", nil, 0) > 0 ? .capabilities : nil
  }

  /// The program on a script's first line.
  private static func interpreter(ofScript path: String) -> String? {
    guard let file = FileBytes(path: path),
      let head = file.read(at: 0, count: Int(min(file.size, 256))), head.starts(with: "#!".utf8)
    else { return nil }
    let line = head.dropFirst(2).prefix { $0 != UInt8(ascii: "\n") }
    let words = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    return words.first.map { String(decoding: $0, as: UTF8.self) }
  }

  /// Whether the program contains Concourse or another libdispatch; nil if neither. The thread sanitizer defines functions
  /// such as `dispatch_async`, which call the library, but not this one.
  private static func ownDispatch(of program: ElfImage, in table: ElfImage.SymbolTable) -> Bool? {
    let name = Array("dispatch_queue_create".utf8)
    guard program.definesFunction(in: table, where: { $0.isEqual(to: name) }) else { return nil }
    return isConcourse(program)
  }

  private static func isConcourse(_ image: ElfImage) -> Bool {
    // The prefix of the mangled names of module ConcourseRuntime.
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

  /// Whether its children may be switched even if it is not: the environment reaches them.
  var canSwitchChildren: Bool {
    switch self {
    case .switchable, .withoutDispatch, .ownDispatch, .staticallyLinked, .script: true
    case .privileged, .notProgram, .unreadable, .damaged, .otherMachine, .otherCLibrary: false
    }
  }

  /// The verdict and the remedy. A predicate whose subject is the program.
  var description: String { description(hasRunOptions: true) }

  /// - Parameter hasRunOptions: Whether the command has the options --force and --children of `concourse run`.
  func description(hasRunOptions: Bool) -> String {
    switch self {
    case .script(let interpreter) where !hasRunOptions:
      "is a script for \(interpreter); name the program that it starts"
    case .unreadable(let error) where !hasRunOptions:
      "cannot be examined (\(describe(error: error))); make it readable"
    case .withoutDispatch where !hasRunOptions:
      "does not use libdispatch.so, and neither do its libraries"
    case .switchable(let path):
      path.count == 1
        ? "can be switched: it needs \(path[0])"
        : "can be switched: it needs \(path.last!) by way of \(path.dropLast().joined(separator: ", "))"
    case .withoutDispatch:
      "does not use libdispatch.so, and neither do its libraries; if it loads one later, use --force; for its "
        + "children, use --children"
    case .ownDispatch(isConcourse: true):
      "already contains Concourse; run it directly"
    case .ownDispatch(isConcourse: false):
      "contains its own libdispatch; build it against libdispatch.so or Concourse"
    case .staticallyLinked:
      "is statically linked and loads no libraries; link it dynamically or build it against Concourse"
    case .privileged(.setuid):
      "is setuid, so the loader ignores its environment; run a copy without that bit"
    case .privileged(.setgid):
      "is setgid, so the loader ignores its environment; run a copy without that bit"
    case .privileged(.capabilities):
      "has file capabilities, so the loader ignores its environment; run a copy without them"
    case .script(let interpreter):
      "is a script for \(interpreter); name the program that it starts, or switch its children with --children"
    case .notProgram:
      "is neither an ELF program nor a script that names its interpreter; name the program itself"
    case .unreadable(let error):
      "cannot be examined (\(describe(error: error))); if it uses libdispatch.so, run it with --force"
    case .damaged(let what):
      "is not a valid ELF program (\(what)); rebuild or reinstall it"
    case .otherMachine(let target):
      "is built for another processor (\(target.name)); pass a libdispatch.so for it with --library"
    case .otherCLibrary(let loader):
      "is built for another C library (its loader is \(loader)); build it for glibc"
    }
  }
}
