/// Finds functions, files and lines of addresses.
///
/// Functions come from the symbol tables of the files; files and lines, and what the compiler has inlined, from the
/// toolchain's `llvm-symbolizer`, if there is one and the file has debug information.
final class Symbols {
  private let process: TargetProcess
  private let images: [MappedImage]
  private let engine: MappedImage
  private let engineIsLibrary: Bool
  /// By the addresses of the images: a file and its successor have the same name.
  private var tables: [UInt64: FunctionTable] = [:]
  /// By the same: where the images' files can be read.
  private var files: [UInt64: String?] = [:]
  /// What has been resolved, also by earlier calls: each takes time to look up.
  private var entries: [Place: [StackEntry]] = [:]
  /// More are not those of a program.
  private static let mostEntries = 100_000

  private struct Place: Hashable {
    var address: UInt64
    /// Whether it is in a call, not the beginning of code.
    var isReturn: Bool
  }

  init(_ process: TargetProcess, _ images: [MappedImage], engine: MappedImage) {
    self.process = process
    self.images = images
    self.engine = engine
    engineIsLibrary = FilePath.lastPart(of: engine.path).hasPrefix("libdispatch")
  }

  /// The stack of each thread. Asks the symbolizer once for all of them.
  ///
  /// - Parameter areReturns: Whether the addresses, but the innermost, are return addresses, not beginnings of code.
  func resolve(_ stacks: [[UInt64]], areReturns: Bool = true) -> [[StackEntry]] {
    // A return address may be that of the next function or line.
    func place(_ index: Int, _ address: UInt64) -> Place {
      Place(address: index == 0 || !areReturns ? address : address &- 1, isReturn: areReturns)
    }
    if entries.count > Self.mostEntries { entries = [:] }
    var clients: [UInt64] = []
    for stack in stacks {
      for (index, address) in stack.enumerated() {
        let place = place(index, address)
        guard entries[place] == nil else { continue }
        let entry = entry(at: place.address)
        entries[place] = [entry]
        if entry.origin == .client, let image = image(of: place.address), isForSymbolizer(image) {
          clients.append(place.address)
        }
      }
    }
    if areReturns { addLines(clients) } else { addLinesOfBeginnings(clients) }
    return stacks.map { stack in
      stack.enumerated().flatMap { index, address in entries[place(index, address)] ?? [] }
    }
  }

  /// The addresses of the function that has this one; nil if unknown.
  func function(at address: UInt64) -> Range<UInt64>? {
    guard let image = image(of: address) else { return nil }
    return table(of: image).range(at: address &- image.bias).flatMap { range in
      let start = range.lowerBound &+ image.bias
      let (end, overflow) = start.addingReportingOverflow(range.upperBound - range.lowerBound)
      return overflow ? nil : start..<end
    }
  }

  private func table(of image: MappedImage) -> FunctionTable {
    if let known = tables[image.start] { return known }
    let table = file(of: image).map { FunctionTable(path: $0) } ?? FunctionTable()
    tables[image.start] = table
    return table
  }

  private func file(of image: MappedImage) -> String? {
    if let known = files[image.start] { return known }
    let file = image.file(of: process)
    files[image.start] = .some(file)
    return file
  }

  private func image(of address: UInt64) -> MappedImage? {
    // Sorted by address.
    let next = images.sortedIndex { $0.start > address }
    return next > 0 && images[next - 1].contains(address) ? images[next - 1] : nil
  }

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
    "_dispatch_", "$sScheduled", "$sSv9Concourse", "$sSp16Concourse", "$sScJ9Concourse",
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

  /// Whether its file can be read, and the name of that does not end the line or the quotes in which it is written.
  private func isForSymbolizer(_ image: MappedImage) -> Bool {
    file(of: image).map { $0.utf8.allSatisfy { $0 >= 0x20 && $0 != UInt8(ascii: "\"") } } ?? false
  }

  /// For each address: for each function, the innermost first, its name and its place.
  private func symbolize(_ addresses: [UInt64]) -> [[Substring]]? {
    guard !addresses.isEmpty, let tool = Toolchain.find("llvm-symbolizer") else { return nil }
    var input = ""
    for address in addresses {
      guard let image = image(of: address), let file = file(of: image), isForSymbolizer(image) else {
        return nil
      }
      input += "\"\(file)\" 0x\(hex(address &- image.bias))\n"
    }
    guard
      let output = Toolchain.run(
        tool, ["--functions=linkage", "--no-demangle", "--inlines", "--output-style=LLVM"], input)
    else { return nil }
    // An empty line ends each address.
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
    return blocks.count == addresses.count ? blocks : nil
  }

  /// The file, line and column that the symbolizer prints; nil if the line is not known.
  private func place(_ text: Substring) -> (file: String, line: Int, column: Int)? {
    let parts = text.split(separator: ":")
    guard parts.count >= 3, parts[0] != "??", let line = Int(parts[parts.count - 2]), line > 0,
      let column = Int(parts[parts.count - 1])
    else { return nil }
    return (parts[..<(parts.count - 2)].joined(separator: ":"), line, column)
  }

  /// Where a part of an asynchronous function begins, the optimizer may have left the line of a function that it inlined
  /// there, with column 0. The first instruction with a column has the function's own line.
  private func addLinesOfBeginnings(_ addresses: [UInt64]) {
    let distances: [UInt64] = [0, 4, 8, 12, 16, 24, 32, 48, 64, 96]
    let probes = addresses.flatMap { address in
      distances.map { image(of: address &+ $0) == nil ? address : address &+ $0 }
    }
    guard let blocks = symbolize(probes) else { return }
    for (index, address) in addresses.enumerated() {
      let key = Place(address: address, isReturn: false)
      guard let own = entries[key]?[0], let range = function(at: address) else { continue }
      for (number, distance) in distances.enumerated() where range.contains(address &+ distance) {
        let block = blocks[index * distances.count + number]
        guard block.count >= 2, own.symbol.map({ $0 == block[block.count - 2] }) ?? false,
          let place = place(block[block.count - 1]), place.column > 0
        else { continue }
        entries[key]![0].line = place.line
        entries[key]![0].file = place.file
        break
      }
    }
  }

  private func addLines(_ addresses: [UInt64]) {
    guard let blocks = symbolize(addresses) else { return }
    for (address, block) in zip(addresses, blocks) {
      let key = Place(address: address, isReturn: true)
      let outer = entries[key]![0]
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
        if let place = place(block[index + 1]) { (entry.file, entry.line) = (place.file, place.line) }
        found.append(entry)
      }
      if !found.isEmpty { entries[key] = found }
    }
  }
}
