import Glibc
import Testing

@testable import ConcourseTool

@Suite("LibrarySearch")
struct LibrarySearchTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func program(_ builder: ElfBuilder) throws -> ElfImage {
    try ElfImage(path: folder.write(builder.bytes(), to: "bin/program"))
  }

  private func path(_ builder: ElfBuilder, search: LibrarySearch = LibrarySearch()) throws -> [String]? {
    try search.closure(of: program(builder)).path(to: "libdispatch.so")
  }

  @Test("a library is found through other libraries")
  func transitive() throws {
    try folder.write(ElfBuilder(needed: ["libb.so"], runpath: "$ORIGIN/more").bytes(), to: "lib/liba.so")
    try folder.write(ElfBuilder(needed: ["libdispatch.so"]).bytes(), to: "lib/more/libb.so")
    #expect(
      try path(ElfBuilder(needed: ["liba.so"], runpath: "${ORIGIN}/../lib")) == [
        "liba.so", "libb.so", "libdispatch.so",
      ])
    #expect(try path(ElfBuilder(needed: ["libdispatch.so"])) == ["libdispatch.so"])
    #expect(try path(ElfBuilder(needed: ["libc.so.6"])) == nil)
  }

  @Test("the search ends for libraries that need each other or themselves")
  func circles() throws {
    try folder.write(
      ElfBuilder(needed: ["libb.so", "liba.so"], runpath: "$ORIGIN").bytes(), to: "lib/liba.so")
    try folder.write(ElfBuilder(needed: ["liba.so"], runpath: "$ORIGIN").bytes(), to: "lib/libb.so")
    let image = try program(ElfBuilder(needed: ["liba.so"], runpath: "\(folder.path)/lib"))
    let closure = LibrarySearch().closure(of: image)
    #expect(closure.loaded.map(\.name) == [image.path, "liba.so", "libb.so"])
    #expect(closure.missing.isEmpty)
    #expect(closure.path(to: "libdispatch.so") == nil)
  }

  @Test("LD_LIBRARY_PATH precedes RUNPATH, and RPATH precedes both, for libraries of libraries too")
  func order() throws {
    try folder.write(ElfBuilder(needed: ["libdispatch.so"]).bytes(), to: "with/liba.so")
    try folder.write(ElfBuilder().bytes(), to: "without/liba.so")
    let (with, without) = (folder.path + "/with", folder.path + "/without")
    #expect(
      try path(ElfBuilder(needed: ["liba.so"], runpath: with), search: .init(libraryPath: [without])) == nil)
    #expect(
      try path(ElfBuilder(needed: ["liba.so"], rpath: with), search: .init(libraryPath: [without])) != nil)
    // An RPATH beside a RUNPATH does not count.
    #expect(try path(ElfBuilder(needed: ["liba.so"], rpath: with, runpath: "/absent")) == nil)
    try folder.write(ElfBuilder(needed: ["liba.so"]).bytes(), to: "bin/libouter.so")
    #expect(try path(ElfBuilder(needed: ["libouter.so"], rpath: "$ORIGIN:\(with)")) != nil)
    #expect(try path(ElfBuilder(needed: ["libouter.so"], runpath: "$ORIGIN:\(with)")) == nil)
    #expect(try path(ElfBuilder(needed: ["liba.so"]), search: .init(defaults: [with])) != nil)
    #expect(try path(ElfBuilder(needed: ["\(with)/liba.so"])) != nil)
  }

  @Test("a library for another machine, or a damaged one, is ignored")
  func otherMachine() throws {
    try folder.write(ElfBuilder(machine: 183, needed: ["libdispatch.so"]).bytes(), to: "arm/liba.so")
    try folder.write(ElfBuilder(needed: ["libdispatch.so"]).bytes().prefix(80), to: "broken/liba.so")
    let paths = "\(folder.path)/arm:\(folder.path)/broken"
    let closure = LibrarySearch().closure(of: try program(ElfBuilder(needed: ["liba.so"], runpath: paths)))
    #expect(closure.missing.map(\.name) == ["liba.so"])
    try folder.write(ElfBuilder(needed: ["libdispatch.so"]).bytes(), to: "good/liba.so")
    #expect(try path(ElfBuilder(needed: ["liba.so"], runpath: paths + ":\(folder.path)/good")) != nil)
  }

  @Test("excluded libraries are not read")
  func omission() throws {
    try folder.write(ElfBuilder(needed: ["libblocks.so"]).bytes(), to: "lib/libdispatch.so")
    let image = try program(ElfBuilder(needed: ["libdispatch.so"], runpath: "\(folder.path)/lib"))
    #expect(LibrarySearch().closure(of: image).missing.map(\.name) == ["libblocks.so"])
    let closure = LibrarySearch().closure(of: image, omitting: "libdispatch.so")
    #expect(closure.loaded.count == 1 && closure.missing.isEmpty)
    #expect(closure.path(to: "libdispatch.so") == ["libdispatch.so"])
  }

  @Test("the system's list is read in both its forms")
  func cache() {
    let strings: [UInt8] = Array("liba.so\0/x/liba.so\0/y/liba.so\0".utf8)
    func list() -> [UInt8] {
      let start = UInt32(48 + 2 * 24)
      var bytes =
        Array("glibc-ld.so.cache1.1".utf8) + UInt32(2).littleBytes + UInt32(strings.count).littleBytes
      bytes += Array(repeating: 0, count: 20)
      for path: UInt32 in [8, 19] {
        bytes += UInt32(0x303).littleBytes + start.littleBytes + (start + path).littleBytes
        bytes += Array(repeating: 0, count: 12)
      }
      return bytes + strings
    }
    #expect(LoaderCache(bytes: list()).paths(of: "liba.so") == ["/x/liba.so", "/y/liba.so"])
    #expect(LoaderCache(bytes: list()).paths(of: "libb.so") == [])
    // Sixteen bytes and an entry of twelve, filled up to 32.
    let old = Array("ld.so-1.7.0\0".utf8) + UInt32(1).littleBytes + Array(repeating: 0, count: 16)
    #expect(LoaderCache(bytes: old + list()).paths(of: "liba.so") == ["/x/liba.so", "/y/liba.so"])
    for length in 0..<list().count { _ = LoaderCache(bytes: Array(list()[..<length])).paths(of: "liba.so") }
    var lying = list()
    lying.replaceSubrange(20..<24, with: UInt32.max.littleBytes)
    lying.replaceSubrange(52..<56, with: UInt32.max.littleBytes)
    #expect(LoaderCache(bytes: lying).paths(of: "liba.so") == ["/y/liba.so"])
    let huge = Array("ld.so-1.7.0\0".utf8) + UInt32.max.littleBytes
    #expect(LoaderCache(bytes: huge).paths(of: "liba.so") == [])
  }

  @Test(
    "the built library stays loaded after dlclose: its threads run its code",
    .enabled(if: getenv("CONCOURSE_SANITIZER") == nil, "an instrumented library cannot be opened at run time")
  )
  func staysLoaded() async {
    await #expect(processExitsWith: .success) {
      let runner = try #require(ProcessLink.executable)
      let library = runner.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/libdispatch.so"
      let handle = try #require(dlopen(library, RTLD_NOW | RTLD_LOCAL))
      dlclose(handle)
      #expect(try #require(ProcFile.read("/proc/self/maps")).contains(library))
    }
  }
}
