import Testing

@testable import ConcourseTool

@Suite("ExploreOptions")
struct ExploreOptionsTests {
  @Test("every option")
  func options() {
    let words = [
      "--schedules", "20", "--strategy=pct", "--depth", "4", "--seed", "7", "--steps", "900", "--time",
      "real",
      "--jobs", "3", "--no-shrink", "-o", "a.html", "--library", "l", "--", "p", "--depth",
    ]
    var expected = ExploreOptions()
    (expected.target, expected.schedules, expected.strategy, expected.depth) = (19, 20, .pct, 4)
    (expected.seed, expected.steps, expected.isRealTime, expected.jobs) = (7, 900, true, 3)
    (expected.shrinks, expected.output, expected.library) = (false, "a.html", "l")
    #expect(ExploreOptions.parse(words) == .options(expected))
    expected = ExploreOptions()
    (expected.target, expected.findsRaces) = (1, true)
    #expect(ExploreOptions.parse(["--races", "p"]) == .options(expected))
    expected = ExploreOptions()
    (expected.target, expected.seconds) = (2, 1.5)
    #expect(ExploreOptions.parse(["--seconds", "1.5", "p"]) == .options(expected))
    expected = ExploreOptions()
    (expected.target, expected.replay) = (2, "0abc")
    #expect(ExploreOptions.parse(["--replay", "0abc", "p"]) == .options(expected))
  }

  @Test(
    "what cannot be meant is refused",
    arguments: [
      [], ["--schedules", "0", "p"], ["--schedules", "5", "--seconds", "2", "p"], ["--strategy", "dfs", "p"],
      ["--time", "slow", "p"], ["--depth", "0", "p"], ["--seed", "-1", "p"],
      ["--replay", "0abc", "--schedules", "5", "p"], ["-o", "a.json", "p"], ["--jobs", "0", "p"],
      ["--steps", "x", "p"],
    ])
  func refused(words: [String]) {
    guard case .unusable = ExploreOptions.parse(words) else {
      Issue.record("\(words) was accepted")
      return
    }
  }
}
