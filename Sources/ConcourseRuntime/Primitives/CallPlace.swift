internal import CConcourse
internal import Glibc

/// Says where in the program threads of this process that stand still have called the runtime: function, file, line,
/// module, and offset in the module's file.
///
/// Made for a process that is about to end in an unknown state. So it starts no other program (a filter may refuse that,
/// and end the process another way), and takes no lock of the loader, which a thread of the deadlock may have: modules
/// come from /proc/self/maps, names and lines from the tables of their files. What is read is checked, and where something
/// cannot be read, the text says less.
enum CallPlace {
  private static let mostFrames = 64
  /// Addresses that are shown of a program without symbols, whose frames may be the runtime's own.
  private static let mostUnknown = 8
  /// Nanoseconds that the search for lines may take. A debug build reads some 10 MB of line tables in a second.
  private static let linePatience: UInt64 = 3_000_000_000

  /// - Parameter frames: of each thread a frame of the runtime on its stack (`concourse_caller_frame`).
  /// - Returns: for each thread its place; nil if nothing is known.
  static func descriptions(from frames: [UInt]) -> [String?] {
    descriptions(of: frames.map(returnAddresses), in: Module.all())
  }

  /// The place of one thread.
  /// - Parameters:
  ///   - stack: as from `returnAddresses`.
  ///   - engine: an address in the engine's code; nil if the stack begins there.
  static func description(of stack: [UInt], engine: UInt? = nil) -> String? {
    descriptions(of: [stack], in: Module.all(), engine: engine)[0]
  }

  /// - Parameter stacks: of each thread the return addresses, the innermost first.
  static func descriptions(of stacks: [[UInt]], in modules: [Module], engine: UInt? = nil) -> [String?] {
    var files: [String: ModuleFile] = [:]
    let own = engine.flatMap { address in modules.first { $0.range.contains(address) }?.path }
    let places = stacks.map { place(of: $0, in: modules, own, &files) }
    // One pass over the lines of a module for all threads.
    var lines: [String: [UInt: String]] = [:]
    let end = Clock.uptime() &+ linePatience
    for path in Set(places.compactMap { $0?.function == nil ? nil : $0?.path }) {
      let wanted = places.compactMap { $0?.path == path ? $0?.function : nil }
      lines[path] = files[path]?.lines(of: wanted, until: end)
    }
    return places.map { place in
      guard let place, let function = place.function else { return place?.text }
      let line = lines[place.path]?[function.address].map { " at \($0)" } ?? ""
      return "\(demangled(function.name))\(line) (\(place.text))"
    }
  }

  private struct Place {
    /// Module and offset, or several of them.
    var text: String
    var path: String
    var function: ModuleFile.Function?
  }

  private static func place(
    of stack: [UInt], in modules: [Module], _ engine: String?, _ files: inout [String: ModuleFile]
  ) -> Place? {
    var own = engine
    var unknown: [String] = []
    for address in stack {
      // The call is before the address, which may be in the next function.
      guard let module = modules.first(where: { $0.range.contains(address - 1) }) else { continue }
      let name = module.name
      if own == nil { own = module.path }
      let isOwn = module.path == own
      if isOwn && name.hasPrefix("libdispatch.so") || isSystem(name) { continue }
      let file = files[module.path] ?? ModuleFile(module)
      files[module.path] = file
      let offset = file.address(ofByte: address - 1 - module.range.lowerBound &+ module.offset)
      let text = "\(name)+0x" + String(offset ?? address - 1 - module.range.lowerBound, radix: 16)
      guard let offset, let function = file.function(at: offset) else {
        if unknown.count < mostUnknown { unknown.append(text) }
        continue
      }
      if isOwn && isRuntime(function.name) || isThunk(function.name) { continue }
      if isOwn || unknown.isEmpty { return Place(text: text, path: module.path, function: function) }
      break
    }
    return unknown.isEmpty ? nil : Place(text: unknown.joined(separator: ", "), path: "")
  }

  /// The frames end where the chain of frame pointers does: at the latest in code that was compiled without them. The
  /// runtime's own frames have one, so the first address outside it is right.
  static func returnAddresses(from frame: UInt) -> [UInt] {
    guard let memory = ReadFile("/proc/self/mem") else { return [] }
    var (found, frame) = ([UInt](), frame)
    while found.count < mostFrames, frame != 0, frame % 8 == 0,
      let words = memory.bytes(at: frame, count: 16),
      let next: UInt = words.number(at: 0), let address: UInt = words.number(at: 8), address > 1
    {
      found.append(address)
      let caller = callersFrame(next)
      guard caller > frame, caller - frame < 1 << 24 else { break }
      frame = caller
    }
    return found
  }

  /// A caller's frame pointer as a frame has it: an asynchronous function marks it.
  static func callersFrame(_ word: UInt) -> UInt { word & ~(1 << 60) }

  static func isSystem(_ name: String) -> Bool {
    ["libswift", "libFoundation", "lib_Foundation", "libc.so", "ld-linux", "libBlocksRuntime"]
      .contains { name.hasPrefix($0) }
  }

  private static func isRuntime(_ symbol: String) -> Bool {
    [
      "$s16ConcourseRuntime", "$s15ConcourseEvents", "$s12ConcourseABI", "$s9Concourse", "concourse_",
      "dispatch_",
      "_dispatch_", "$ss", "swift_",
    ].contains { symbol.hasPrefix($0) }
  }

  /// A function of the compiler's between the program's and the runtime's.
  private static func isThunk(_ symbol: String) -> Bool {
    symbol.hasPrefix("$s") && (symbol.hasSuffix("TR") || symbol.hasSuffix("TRTA") || symbol.hasSuffix("TA"))
  }

  private static func demangled(_ symbol: String) -> String {
    guard symbol.hasPrefix("$s"), let text = symbol.withCString({ demangle($0, strlen($0), nil, nil, 0) })
    else {
      return symbol
    }
    defer { free(text) }
    return String(cString: text)
  }
}

@_silgen_name("swift_demangle")
private func demangle(
  _ name: UnsafePointer<CChar>?, _ length: Int, _ output: UnsafeMutablePointer<CChar>?,
  _ size: UnsafeMutablePointer<Int>?, _ flags: UInt32
) -> UnsafeMutablePointer<CChar>?

/// Code of a file in the memory of this process.
struct Module {
  let range: Range<UInt>
  let offset: UInt
  let path: String
  let inode: UInt64

  var name: String {
    String(path[(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex)...])
  }

  static func all() -> [Module] {
    guard let file = ReadFile("/proc/self/maps") else { return [] }
    var text: [UInt8] = []
    while text.count < 1 << 24, let piece = file.someBytes(at: UInt(text.count), count: 65_536) {
      text += piece
    }
    return text.split(separator: UInt8(ascii: "\n")).compactMap {
      Module(line: String(decoding: $0, as: UTF8.self))
    }
  }

  /// `55d0-55e0 r-xp 00001000 fe:01 12345    /path`
  init?(line: String) {
    let words = line.split(separator: " ", maxSplits: 5)
    guard words.count == 6, words[1].contains("x") else { return nil }
    let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
    guard ends.count == 2, ends[0] < ends[1], let offset = UInt(words[2], radix: 16),
      let inode = UInt64(words[4])
    else { return nil }
    range = ends[0]..<ends[1]
    self.offset = offset
    self.inode = inode
    path = String(words[5].drop { $0 == " " })
  }
}
