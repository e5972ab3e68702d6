import Testing

@testable import ConcourseTool

/// Names of files that are not trusted.
@Suite("mangled names")
struct MangledNameTests {
  /// A function of C++ whose template argument is a pair of pairs of pairs, and so on: twice as much text at each level.
  private static func pairs(_ levels: Int) -> String {
    func reference(_ number: Int) -> String {
      number == 0 ? "S_" : "S\(String(number - 1, radix: 36, uppercase: true))_"
    }
    return (1...levels).reduce("_Z1f1AIiiE") { name, level in
      name + "S_I" + reference(level) + reference(level) + "E"
    }
  }

  @Test("a name that stands for exponentially much text is shown as it is, and cut")
  func exponential() {
    // Both would be more than a gigabyte.
    #expect(Demangler.readable(Self.pairs(28)) == Self.pairs(28))
    let long = Self.pairs(200)
    #expect(Demangler.readable(long) == long.prefix(500) + "…")
    // So few levels are read, here and, with more references, in another process.
    #expect(Demangler.readable(Self.pairs(2)) == "f")
    #expect(Demangler.readable(Self.pairs(2) + String(repeating: "S_", count: 30)) == "f")
    // Linear, but longer than any name.
    #expect(Demangler.readable("_Z1f" + String(repeating: "P", count: 5000) + "i").utf8.count < 600)
    #expect(Demangler.readable("$s" + String(repeating: "4main", count: 2000)).utf8.count < 600)
    #expect(!Demangler.isThunk("$s" + String(repeating: "A2048B", count: 20) + "TRyy"))
  }

  @Test("a private function, whose name has many characters of references, is read")
  func privateFunction() {
    let name = "$s15broken_programs9TransfersO8transfer33_3AC92AAAD3CEAECA6673E82C2EE60ACCLL2toySi_tFZ"
    #expect(MangledName.referencesOfSwift(Array(name.utf8)) > MangledName.mostReferences)
    #expect(Demangler.readable(name) == "Transfers.transfer(to:)")
  }

  @Test(
    "references in Swift's names",
    arguments: [
      ("$s4main4workyyF", 0), ("$s4main4workyyAA1CCF", 1), ("AbcD", 3), ("A12B", 12), ("A3b2C", 5),
      ("A12_", 1), ("A_", 1), ("A", 0), ("A999999999999999999999B", MangledName.longest),
    ])
  func swift(_ name: String, _ count: Int) {
    #expect(MangledName.referencesOfSwift(Array(name.utf8)) == count)
  }

  @Test(
    "references in names of C++",
    arguments: [
      ("_Z4workv", 0), ("_Z1fS_S0_S1A_T_T0_", 5), ("_ZNSt5mutex4lockEv", 0), ("S", 0), ("S0", 0),
      ("S000000000_", 1),
    ])
  func cxx(_ name: String, _ count: Int) {
    #expect(MangledName.referencesOfCxx(Array(name.utf8)) == count)
  }

  @Test("a name that repeats the elements of a pack is read in another process")
  func packs() {
    #expect(MangledName.expandsPacks(Array("_Z1fIJiiEEvDpT_".utf8)))
    #expect(!MangledName.expandsPacks(Array("_Z8dispatchv".utf8)))
    #expect(Demangler.readable("_Z1fIJiiEEvDpT_") == "f<int, int>")
  }

  @Test("all names of a damaged table end where the table ends")
  func endlessNames() throws {
    let folder = try TemporaryFolder()
    let long = String(repeating: "x", count: 1 << 18)
    var elf = ElfBuilder(functions: [(long, 0x1000, 16)]).bytes()
    let name = try #require(elf.firstRange(of: Array(long.utf8)))
    // As many functions as that in a table that has no end of a name.
    elf[name.upperBound] = UInt8(ascii: "x")
    try folder.write(elf, to: "image")
    let image = try ElfImage(path: folder.path + "/image")
    #expect(image.functions(in: .full).map(\.name.utf8.count) == [1 << 16])
    #expect(!image.definesFunction(in: .full) { $0.isEqual(to: "x".utf8) })
    #expect(image.definesFunction(in: .full) { $0.starts(with: "xx".utf8) })
    let shown = FunctionTable(path: folder.path + "/image").name(at: 0x1008).map(Demangler.readable)
    #expect(shown == long.prefix(500) + "…")
  }
}
