import Testing

@testable import concourse_names

/// The names that the plugin `ConcourseNames` makes unambiguous.
@Suite("ConcourseNames", .timeLimit(.minutes(10)))
struct NamesTests {
  @Test("the plugin's file has every name that both Concourse and the toolchain's Dispatch have")
  func complete() throws {
    let scratch = try Scratch()
    let ours = try ["Concourse", "ConcourseEvents", "ConcourseRuntime"].reduce(into: [:]) { all, module in
      try all.merge(scratch.topLevelNames(of: module)) { $1 }
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
