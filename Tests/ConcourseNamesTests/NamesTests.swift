import FoundationEssentials
import Glibc
import Testing

@testable import concourse_names

/// The names that the plugin `ConcourseNames` settles.
@Suite("ConcourseNames", .timeLimit(.minutes(2)))
struct NamesTests {
  @Test("the plugin's file has every name that both Concourse and the toolchain's Dispatch have")
  func complete() throws {
    let scratch = try Scratch()
    let ours = try scratch.topLevelNames(of: "Concourse").merging(
      scratch.topLevelNames(of: "ConcourseRuntime")
    ) {
      $1
    }
    let theirs = try scratch.topLevelNames(of: "Dispatch")
    let both = ours.filter { theirs[$0.key] != nil && $0.value != "swift.func.op" }
    let functions = both.filter { $0.value == "swift.func" }.keys
    #expect(functions.sorted() == NamesFile.functions)
    #expect(Set(both.keys).subtracting(functions).sorted() == NamesFile.types)
    #expect(NamesFile.types.contains("DispatchQueue"))
    for name in NamesFile.types {
      #expect(NamesFile.text.contains("\ntypealias \(name) = Concourse::\(name)\n"))
    }
  }
}

/// A directory for what the compiler knows of modules.
private struct Scratch: ~Copyable {
  private let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.path + "/concourse-names-\(getpid())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The kinds of a module's public declarations outside of types, by their names.
  func topLevelNames(of module: String) throws -> [String: String] {
    let products = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      .split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 }
    let headers = #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 }
    let status = run([
      "/usr/bin/env", "swift", "symbolgraph-extract", "-module-name", module, "-target", target,
      "-I", products + "/Modules", "-minimum-access-level", "public", "-output-dir", path,
      "-Xcc", "-fmodule-map-file=\(products)/CConcourse.build/module.modulemap",
      "-Xcc", "-fmodule-map-file=\(products)/CConcourseABI.build/module.modulemap",
      "-I", headers + "/Sources/CConcourse/include", "-I", headers + "/Sources/CConcourseABI/include",
    ])
    try #require(status == 0, "swift symbolgraph-extract \(module)")
    let text = try Data(contentsOf: URL(filePath: path + "/\(module).symbols.json"))
    let graph = try JSONDecoder().decode(SymbolGraph.self, from: text)
    let top = graph.symbols.filter { $0.pathComponents.count == 1 }
    return Dictionary(top.map { ($0.pathComponents[0], $0.kind.identifier) }) { $1 }
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

/// What of a symbol graph the test reads.
private struct SymbolGraph: Decodable {
  struct Symbol: Decodable {
    struct Kind: Decodable { let identifier: String }
    let kind: Kind
    let pathComponents: [String]
  }
  let symbols: [Symbol]
}
