// Reads the input as a program, as a library of functions, and as the loader's cache.
@testable import ConcourseTool

var seeds: [[UInt8]] {
  [
    ElfBuilder(
      interpreter: "/lib64/ld-linux-x86-64.so.2", needed: ["libdispatch.so", "libc.so.6"], soname: "a.so",
      rpath: "$ORIGIN/../lib:/opt"
    ).bytes(),
    ElfBuilder(
      needed: ["libswiftCore.so"], runpath: "${ORIGIN}:$LIB/x:$PLATFORM",
      functions: [("main", 0x40_1000, 16), ("$s4main", 0x40_1010, 0)]
    ).bytes(),
    FileBytes(path: "/bin/true").flatMap { $0.read(at: 0, count: Int($0.size)) } ?? [],
    Array("glibc-ld.so.cache1.1".utf8) + [1, 0, 0, 0] + [UInt8](repeating: 0, count: 48),
  ]
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = FuzzInput(start, count).rest
  FuzzFile.write(bytes)
  let cache = LoaderCache(bytes: Array(bytes))
  _ = cache.paths(of: "libc.so.6")
  var search = LibrarySearch()
  search.cache = cache
  let target = ElfTarget(is64Bit: true, isLittleEndian: true, machine: 62)
  _ = ProgramCheck(target: target, search: search).verdict(on: FuzzFile.path).description
  guard let image = try? ElfImage(path: FuzzFile.path) else { return 0 }
  _ = image.section(named: RuntimeLibrary.sectionName)?.concourseVersion
  _ = image.variable(named: "concourse_inspection")
  _ = image.moduleNumber
  _ = image.definesFunction(in: .full) { $0.isEqual(to: "main".utf8) }
  let table = FunctionTable(path: FuzzFile.path)
  for function in image.functions(in: .full).prefix(64) {
    for address in [function.address, function.address &+ function.size, function.address &- 1] {
      _ = table.name(at: address)
      _ = table.range(at: address)
    }
  }
  return 0
}
