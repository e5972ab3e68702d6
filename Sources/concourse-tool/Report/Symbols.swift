import CTracing
import Glibc

/// One place on a stack.
struct StackEntry {
  enum Origin {
    case engine, system, client
  }

  let address: UInt64
  var image: String
  /// As the linker knows it; nil if there is no symbol.
  var symbol: String?
  /// For people.
  var function: String
  var file: String?
  var line: Int?
  var origin: Origin
  /// Whether the compiler made it: it only passes a call on.
  var isThunk = false
}

/// Finds functions, files and lines of addresses.
///
/// Functions come from the symbol tables of the files; files and lines, and what the compiler has inlined, from the
/// toolchain's `llvm-symbolizer`, if there is one and the file has debug information.
final class Symbols {
  private let process: TargetProcess
  private let images: [MappedImage]
  private let engine: MappedImage
  private let engineIsLibrary: Bool
  private var tables: [String: FunctionTable] = [:]
  private var entries: [UInt64: [StackEntry]] = [:]

  init(_ process: TargetProcess, _ images: [MappedImage], engine: MappedImage) {
    self.process = process
    self.images = images
    self.engine = engine
    engineIsLibrary = FilePath.lastPart(of: engine.path).hasPrefix("libdispatch.so")
  }

  /// The stack of each thread. Asks the symbolizer once for all of them.
  func resolve(_ stacks: [[UInt64]]) -> [[StackEntry]] {
    var wanted: [UInt64] = []
    var seen: Set<UInt64> = []
    for stack in stacks {
      // A return address may be that of the next function or line.
      for (index, address) in stack.enumerated() {
        let place = index == 0 ? address : address - 1
        if seen.insert(place).inserted { wanted.append(place) }
      }
    }
    for address in wanted { entries[address] = [entry(at: address)] }
    let clients = wanted.filter { entries[$0]![0].origin == .client && !entries[$0]![0].image.isEmpty }
    addLines(clients)
    return stacks.map { stack in
      stack.enumerated().flatMap { index, address in entries[index == 0 ? address : address - 1] ?? [] }
    }
  }

  /// The addresses of the function that has this one; nil if unknown.
  func function(at address: UInt64) -> Range<UInt64>? {
    guard let image = image(of: address) else { return nil }
    return table(of: image).range(at: address &- image.bias).map {
      $0.lowerBound &+ image.bias..<$0.upperBound &+ image.bias
    }
  }

  private func table(of image: MappedImage) -> FunctionTable {
    if let known = tables[image.path] { return known }
    let table = FunctionTable(path: image.file(of: process))
    tables[image.path] = table
    return table
  }

  private func image(of address: UInt64) -> MappedImage? { images.first { $0.contains(address) } }

  private func entry(at address: UInt64) -> StackEntry {
    guard let image = image(of: address) else {
      return StackEntry(
        address: address, image: "", symbol: nil, function: "0x" + hex(address), origin: .system)
    }
    let symbol = table(of: image).name(at: address &- image.bias)
    let name = symbol.map { Demangler.readable($0) }
    return StackEntry(
      address: address, image: image.path, symbol: symbol,
      function: name ?? "\(FilePath.lastPart(of: image.path))+0x\(hex(address &- image.bias))",
      origin: origin(of: symbol, in: image), isThunk: symbol.map(Demangler.isThunk) ?? false)
  }

  private static let systemLibraries = [
    "libc.so", "libc-", "libpthread", "ld-linux", "libswift", "libstdc++", "libgcc_s", "libBlocksRuntime",
    "libFoundation", "lib_Foundation", "libm.so", "[vdso]", "libdispatch.so",
  ]
  private static let enginePrefixes = [
    "$s16ConcourseRuntime", "$s15ConcourseEvents", "$s12ConcourseABI", "$s9Concourse", "concourse_",
    "dispatch_",
    "_dispatch_", "$sScheduled", "$sSv9Concourse", "$sScJ9Concourse",
  ]

  private func origin(of symbol: String?, in image: MappedImage) -> StackEntry.Origin {
    if image.path == engine.path {
      if engineIsLibrary { return .engine }
      if let symbol {
        if Self.enginePrefixes.contains(where: symbol.hasPrefix) { return .engine }
        // The standard library, linked statically, and what the engine has of it: how a job is run.
        if ["swift_", "_swift", "$ss", "$sScJ"].contains(where: symbol.hasPrefix) { return .system }
      }
    }
    let name = FilePath.lastPart(of: image.path)
    if Self.systemLibraries.contains(where: name.hasPrefix) { return .system }
    if let symbol, symbol == "_start" || symbol == "__libc_start_main" { return .system }
    return .client
  }

  private func hex(_ number: UInt64) -> String { String(number, radix: 16) }

  // MARK: The symbolizer

  private func addLines(_ addresses: [UInt64]) {
    guard !addresses.isEmpty, let tool = Toolchain.find("llvm-symbolizer") else { return }
    var input = ""
    for address in addresses {
      let image = image(of: address)!
      input += "\"\(image.file(of: process))\" 0x\(hex(address &- image.bias))\n"
    }
    guard
      let output = Toolchain.run(
        tool, ["--functions=linkage", "--no-demangle", "--inlines", "--output-style=LLVM"], input)
    else { return }
    // For each address: for each function, the innermost first, its name and its place; then an empty line.
    var blocks: [[Substring]] = []
    var block: [Substring] = []
    for line in output.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.isEmpty {
        if !block.isEmpty { blocks.append(block) }
        block = []
      } else {
        block.append(line)
      }
    }
    guard blocks.count == addresses.count else { return }
    for (address, block) in zip(addresses, blocks) {
      let outer = entries[address]![0]
      var found: [StackEntry] = []
      for index in stride(from: 0, to: block.count - 1, by: 2) {
        let symbol = String(block[index])
        var entry = outer
        if symbol != "??" {
          entry.symbol = symbol
          entry.function = Demangler.readable(symbol)
          entry.isThunk = Demangler.isThunk(symbol)
          entry.origin =
            Self.enginePrefixes.contains(where: symbol.hasPrefix) || symbol.hasPrefix("$ss")
            ? .engine : .client
        }
        let place = block[index + 1].split(separator: ":")
        if place.count >= 3, let line = Int(place[place.count - 2]), line > 0, place[0] != "??" {
          entry.line = line
          entry.file = place[..<(place.count - 2)].joined(separator: ":")
        }
        found.append(entry)
      }
      if !found.isEmpty { entries[address] = found }
    }
  }
}

/// The functions of an ELF file by their addresses.
struct FunctionTable {
  private var functions: [(address: UInt64, size: UInt64, name: String)] = []

  init(path: String) {
    guard let image = try? ElfImage(path: path) else { return }
    var found = image.functions(in: .full)
    if found.isEmpty { found = image.functions(in: .dynamic) }
    functions = found.sorted { $0.address < $1.address }
  }

  func name(at address: UInt64) -> String? { index(at: address).map { functions[$0].name } }

  func range(at address: UInt64) -> Range<UInt64>? {
    index(at: address).map { functions[$0].address..<functions[$0].address + max(functions[$0].size, 1) }
  }

  private func index(at address: UInt64) -> Int? {
    var low = 0
    var high = functions.count
    while low < high {
      let middle = (low + high) / 2
      if functions[middle].address <= address { low = middle + 1 } else { high = middle }
    }
    guard low > 0, case let function = functions[low - 1], address - function.address < max(function.size, 1)
    else { return nil }
    return low - 1
  }
}

@_silgen_name("swift_demangle")
private func demangle(
  _ name: UnsafePointer<CChar>?, _ length: Int, _ output: UnsafeMutablePointer<CChar>?,
  _ size: UnsafeMutablePointer<Int>?, _ flags: UInt32
) -> UnsafeMutablePointer<CChar>?

/// Names of Swift functions for people: without modules, types and specializations.
enum Demangler {
  /// Reabstraction thunks and the like.
  static func isThunk(_ symbol: String) -> Bool {
    symbol.hasPrefix("$sI") || symbol.hasPrefix("$s") && (symbol.hasSuffix("TR") || symbol.hasSuffix("TRTA"))
  }

  static func readable(_ symbol: String) -> String {
    guard symbol.hasPrefix("$s") || symbol.hasPrefix("$S") else { return symbol }
    // The system has this function in its standard library, and frees its result with `free`.
    guard let text = symbol.withCString({ demangle($0, strlen($0), nil, nil, 0) }) else { return symbol }
    defer { free(text) }
    return shorten(String(cString: text))
  }

  /// `closure #1 @Sendable () -> () in main.move(from: Int, to: Int) -> ()` becomes `closure #1 in move(from:to:)`.
  static func shorten(_ full: String) -> String {
    var text = withoutDiscriminators(full)
    // `(1) suspend resume partial function for`: a part of an asynchronous function.
    if text.hasPrefix("("), let end = range(of: " partial function for ", in: text) {
      text = String(text[end.upperBound...])
    }
    for prefix in [
      "generic specialization <", "function signature specialization <", "merged ", "@objc ",
      "partial apply forwarder for ",
    ] {
      while text.hasPrefix(prefix) {
        if prefix.hasSuffix("<"), let end = range(of: "> of ", in: text) {
          text = String(text[end.upperBound...])
        } else {
          text = String(text.dropFirst(prefix.count))
        }
      }
    }
    let parts = split(text, at: " in ").map(shortenPart)
    return parts.joined(separator: " in ")
  }

  /// `(move in _0123ABCD)`, the name of a private function, becomes `move`.
  private static func withoutDiscriminators(_ text: String) -> String {
    var result = ""
    var rest = text[...]
    while let open = rest.firstIndex(of: "("), let close = rest[open...].firstIndex(of: ")") {
      let inside = rest[rest.index(after: open)..<close]
      if let place = range(of: " in _", in: String(inside)), inside.split(separator: " ").count == 3 {
        result += rest[..<open] + String(inside)[..<place.lowerBound]
        rest = rest[rest.index(after: close)...]
      } else {
        result += rest[...open]
        rest = rest[rest.index(after: open)...]
      }
    }
    return result + rest
  }

  private static func shortenPart(_ part: String) -> String {
    if part.hasPrefix("closure #") {
      // The number only; the type follows.
      let words = part.split(separator: " ", maxSplits: 2)
      return words.prefix(2).joined(separator: " ")
    }
    var text = part
    for prefix in ["static ", "merged ", "implicit "] where text.hasPrefix(prefix) {
      text = String(text.dropFirst(prefix.count))
    }
    guard let open = firstParenthesis(in: text) else {
      return text.hasSuffix("_main") ? text : lastName(text)
    }
    // Attributes stand between the name and the arguments: `main.move@Sendable (from: Int) -> ()`.
    let name = lastName(String(text[..<open].prefix { $0 != "@" }))
    return name + labels(of: text[open...])
  }

  /// The name after the module; a member keeps its type.
  private static func lastName(_ text: String) -> String {
    let words = text.split(separator: ".")
    return words.count > 1 ? words.dropFirst().joined(separator: ".") : text
  }

  /// `(from: Int, (Int, Int))` becomes `(from:_:)`.
  private static func labels(of arguments: Substring) -> String {
    var depth = 0
    var labels = ""
    var word = ""
    var isLabelled = false
    var hasArgument = false
    func closeArgument() {
      if hasArgument { labels += isLabelled ? word + ":" : "_:" }
    }
    scanning: for character in arguments {
      switch character {
      case "(", "<", "[":
        depth += 1
        if depth > 1 { hasArgument = true }
      case ")", ">", "]":
        depth -= 1
        if depth == 0 { break scanning }
      case "," where depth == 1:
        closeArgument()
        (word, isLabelled, hasArgument) = ("", false, false)
      case ":" where depth == 1 && !isLabelled:
        isLabelled = true
      case " " where !hasArgument:
        break
      default:
        hasArgument = true
        if !isLabelled && depth == 1 { word.append(character) }
      }
    }
    closeArgument()
    return "(" + labels + ")"
  }

  private static func firstParenthesis(in text: String) -> String.Index? { text.firstIndex(of: "(") }

  private static func range(of wanted: String, in text: String) -> Range<String.Index>? {
    var start = text.startIndex
    while start < text.endIndex {
      if text[start...].hasPrefix(wanted) { return start..<text.index(start, offsetBy: wanted.count) }
      start = text.index(after: start)
    }
    return nil
  }

  /// Outside parentheses only: types of arguments may contain the word.
  private static func split(_ text: String, at separator: String) -> [String] {
    var parts: [String] = []
    var part = ""
    var depth = 0
    var index = text.startIndex
    while index < text.endIndex {
      if depth == 0 && text[index...].hasPrefix(separator) {
        parts.append(part)
        part = ""
        index = text.index(index, offsetBy: separator.count)
        continue
      }
      let character = text[index]
      if "(<[".contains(character) { depth += 1 }
      if ")]".contains(character) { depth -= 1 }
      if character == ">" && part.last != "-" { depth -= 1 }
      part.append(character)
      index = text.index(after: index)
    }
    return parts + [part]
  }
}

/// Programs of the toolchain.
enum Toolchain {
  /// The program's path: on PATH, or beside `swift`.
  static func find(_ name: String) -> String? {
    let path = getenv("PATH").map { String(cString: $0) }
    if case .found(let found) = ProgramSearch.find(name, searchPath: path) { return found }
    guard case .found(let swift) = ProgramSearch.find("swift", searchPath: path),
      let resolved = FilePath.resolved(swift)
    else { return nil }
    let beside = resolved.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/" + name
    return access(beside, X_OK) == 0 ? beside : nil
  }

  /// Runs a program with `input`, which must fit into memory twice.
  /// - Returns: its output; nil if it cannot be run or fails.
  static func run(_ path: String, _ arguments: [String], _ input: String) -> String? {
    // A file, not a pipe: so neither side waits for the other.
    let file = tracing_memory_file()
    guard file >= 0 else { return nil }
    defer { close(file) }
    let bytes = Array(input.utf8)
    guard bytes.withUnsafeBytes({ write(file, $0.baseAddress, $0.count) }) == bytes.count else { return nil }
    lseek(file, 0, SEEK_SET)
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { return nil }
    _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
    _ = fcntl(ends[1], F_SETFD, FD_CLOEXEC)
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    var words = ([path] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var child: pid_t = 0
    let failure = posix_spawn(&child, path, &actions, nil, &words, environ)
    close(ends[1])
    defer { close(ends[0]) }
    guard failure == 0 else { return nil }
    var output: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = read(ends[0], &piece, piece.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      output += piece[..<count]
    }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    return status == 0 ? String(decoding: output, as: UTF8.self) : nil
  }
}
