import Glibc

/// Where the exploring library is.
enum ExploringLibrary {
  static let name = "libdispatch-exploring.so"
  /// Its path, if it is at none of the usual places.
  static let variable = "CONCOURSE_EXPLORING_LIBRARY"

  #if arch(arm64)
    private static let triplet = "aarch64-linux-gnu"
  #else
    private static let triplet = "x86_64-linux-gnu"
  #endif

  /// The path that the environment gives; else that of the package's own build, or beside an installed `concourse`.
  static func path() throws -> String {
    if let chosen = environment(variable) {
      guard let path = resolved(chosen) else {
        throw ExplorationError("\(variable) is \(chosen), and there is no such file")
      }
      return try checked(path)
    }
    let package = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(
      separator: "/")
    let commands = (environment("PATH") ?? "").split(separator: ":").map { "\($0)/concourse" }
    let installed = commands.compactMap(resolved).flatMap { command in
      let prefix = command.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(
        separator: "/")
      return ["concourse/", "\(triplet)/concourse/", ""].map { "\(prefix)/lib/\($0)\(name)" }
    }
    for place in ["\(package)/.build/library/\(name)"] + installed {
      if let path = resolved(place) { return try checked(path) }
    }
    throw ExplorationError(
      "\(name) is missing: run '\(package)/Scripts/library --exploring' once, or install Concourse, or set \(variable)"
    )
  }

  /// The loader splits the list of libraries at these.
  private static func checked(_ path: String) throws -> String {
    guard !path.utf8.contains(where: { " :$".utf8.contains($0) }) else {
      throw ExplorationError(
        "the path \(path) contains a space, a colon or a dollar sign, which LD_PRELOAD cannot carry")
    }
    return path
  }

  private static func resolved(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }
}

/// A variable of the environment.
func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

/// Why a test cannot be explored.
public struct ExplorationError: Error, CustomStringConvertible {
  /// One line: "cannot explore", and the reason.
  public let description: String

  init(_ reason: String) { description = "cannot explore: \(reason)" }
}
