import Testing

@testable import ConcourseTool

@Suite("Environment")
struct EnvironmentTests {
  private func switched(
    _ entries: [String], to libraries: [String] = ["/c/libdispatch.so"], children: Bool = false
  ) -> [String] {
    let environment = Environment(entries: entries.map { Array($0.utf8) })
    return environment.switched(to: libraries, children: children).entries
      .map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("without a list, the library is told to remove it again")
  func none() {
    #expect(switched(["A=1"]) == ["A=1", "LD_PRELOAD=/c/libdispatch.so", "CONCOURSE_RUN_PRELOAD="])
    #expect(switched([], children: true) == ["LD_PRELOAD=/c/libdispatch.so"])
  }

  @Test("a list keeps its place and order, and the library comes last")
  func several() {
    #expect(
      switched(["A=1", "LD_PRELOAD=/x.so:/y.so  /z.so", "B=2"]) == [
        "A=1", "LD_PRELOAD=/x.so:/y.so:/z.so:/c/libdispatch.so", "B=2",
        "CONCOURSE_RUN_PRELOAD=LD_PRELOAD=/x.so:/y.so  /z.so",
      ])
    #expect(
      switched(["LD_PRELOAD="]) == ["LD_PRELOAD=/c/libdispatch.so", "CONCOURSE_RUN_PRELOAD=LD_PRELOAD="])
  }

  @Test("another libdispatch.so is replaced, and restored afterwards")
  func another() {
    #expect(
      switched(["LD_PRELOAD=/t/libdispatch.so /t/libdispatch.so.1:libdispatch.so"]) == [
        "LD_PRELOAD=/t/libdispatch.so.1:/c/libdispatch.so",
        "CONCOURSE_RUN_PRELOAD=LD_PRELOAD=/t/libdispatch.so /t/libdispatch.so.1:libdispatch.so",
      ])
  }

  @Test("the library's own libraries are added with it, once")
  func companions() {
    let libraries = ["/b/libBlocksRuntime.so", "/c/libdispatch.so"]
    #expect(
      switched([], to: libraries) == [
        "LD_PRELOAD=/b/libBlocksRuntime.so:/c/libdispatch.so", "CONCOURSE_RUN_PRELOAD=",
      ])
    #expect(
      switched(["LD_PRELOAD=/x.so:/b/libBlocksRuntime.so:/t/libdispatch.so"], to: libraries, children: true)
        == [
          "LD_PRELOAD=/x.so:/b/libBlocksRuntime.so:/c/libdispatch.so"
        ])
  }

  @Test("the variables of an outer command do not affect this one")
  func nested() {
    #expect(
      switched(["CONCOURSE_RUN_PRELOAD=LD_PRELOAD=/x.so", "LD_PRELOAD=/c/libdispatch.so"]) == [
        "LD_PRELOAD=/c/libdispatch.so", "CONCOURSE_RUN_PRELOAD=LD_PRELOAD=/c/libdispatch.so",
      ])
  }

  @Test("entries that are not text, or not assignments, are passed on")
  func bytes() {
    let odd: [[UInt8]] = [[0xFF, 0xFE], [], Array("=".utf8), Array("LD_PRELOADED=1".utf8)]
    let result = Environment(entries: odd).switched(to: ["/c.so"], children: true).entries
    #expect(Array(result.prefix(4)) == odd)
    #expect(Environment(entries: odd).value(of: "LD_PRELOAD") == nil)
  }
}
