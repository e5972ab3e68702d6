import FoundationEssentials
import Glibc
import Testing

@testable import concourse_names

/// A directory for questions to the compiler about modules.
struct Scratch: ~Copyable {
  private let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.path + "/concourse-names-\(UUID())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The kinds of a module's public declarations outside of types, by their names.
  func topLevelNames(of module: String) throws -> [String: String] {
    let status = try run(
      [
        "/usr/bin/env", "swift", "symbolgraph-extract", "-module-name", module, "-target", target,
        "-minimum-access-level", "public", "-output-dir", path,
      ] + searchPaths)
    try #require(status == 0, "swift symbolgraph-extract \(module)")
    let text = try Data(contentsOf: URL(filePath: path + "/\(module).symbols.json"))
    let graph = try JSONDecoder().decode(SymbolGraph.self, from: text)
    let top = graph.symbols.filter { $0.pathComponents.count == 1 }
    return Dictionary(top.map { ($0.pathComponents[0], $0.kind.identifier) }) { $1 }
  }

  /// The compiler's errors for a source file, in order.
  /// - Parameter withNames: whether the module has the plugin's file too.
  func errors(in text: String, withNames: Bool = false) throws -> [String] {
    let (source, names, report) = (path + "/source.swift", path + "/names.swift", path + "/report")
    try Data(text.utf8).write(to: URL(filePath: source))
    try Data(NamesFile.text.utf8).write(to: URL(filePath: names))
    // The shell, since `run` cannot capture a program's output otherwise. Not an empty file: Foundation leaks the
    // memory for one.
    let script = "echo >'\(report)'; exec \"$@\" 2>>'\(report)'"
    _ = try run(
      ["/bin/sh", "-c", script, "sh", "/usr/bin/env", "swiftc", "-typecheck"]
        + ["-swift-version", "6", "-diagnostic-style", "llvm", source] + (withNames ? [names] : [])
        + searchPaths)
    let said = try String(decoding: Data(contentsOf: URL(filePath: report)), as: UTF8.self)
    return said.split(separator: "\n").compactMap { line in
      line.firstRange(of: ": error: ").map { String(line[$0.upperBound...]) }
    }
  }

  /// The directory of this build's modules.
  private var searchPaths: [String] {
    get throws {
      let products = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        .split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 }
      let headers = #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 }
      return [
        "-I", products + "/Modules",
        "-Xcc", "-fmodule-map-file=\(products)/CConcourse.build/module.modulemap",
        "-Xcc", "-fmodule-map-file=\(products)/CConcourseABI.build/module.modulemap",
        "-I", headers + "/Sources/CConcourse/include", "-I", headers + "/Sources/CConcourseABI/include",
      ]
    }
  }

  private var target: String {
    #if arch(arm64)
      "aarch64-unknown-linux-gnu"
    #else
      "x86_64-unknown-linux-gnu"
    #endif
  }

  /// Runs a program to its end, and returns its exit status.
  private func run(_ words: [String]) -> Int32 {
    // SAFETY: copies of the words, freed at the end.
    var argv: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for word in argv { free(word) } }
    var process = pid_t()
    guard posix_spawn(&process, argv[0]!, nil, nil, &argv, environ) == 0 else { return -1 }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return status
  }
}

/// The parts of a symbol graph that the test reads.
private struct SymbolGraph: Decodable {
  struct Symbol: Decodable {
    struct Kind: Decodable { let identifier: String }
    let kind: Kind
    let pathComponents: [String]
  }
  let symbols: [Symbol]
}
