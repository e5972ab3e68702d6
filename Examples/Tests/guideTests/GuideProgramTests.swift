import Testing

/// The program, whose main thread serves the main queue.
@Suite("guide", .timeLimit(.minutes(2))) struct GuideProgramTests {
  @Test func itemsOfTheMainQueueRunOnTheMainThread() throws {
    let run = try GuideRun("main-queue", "background-work", "photo-manager")
    #expect(run.status == 0)
    // The listings' own lines; those of the two threads in either order.
    #expect(
      run.lines.filter { !$0.hasPrefix("#") }.sorted() == [
        "1 photos, told on the main thread", "2 photos, told on the main thread",
        "3 photos, told on the main thread", "[\"harbour\", \"lighthouse\", \"ferry\"]",
        "here: a worker", "in a later one: the main thread", "in an item of the main queue: the main thread",
        "shown on the main thread: 4096 pixels",
      ])
  }

  @Test func thePromptComesAfterTwoSeconds() throws {
    let run = try GuideRun("delay")
    #expect(run.status == 0)
    let last = try #require(run.lines.last)
    let parts = last.split(separator: " ")
    // "… (after 2 s)"
    let seconds = try #require(Int(parts[parts.count - 2]), "\(last)")
    #expect(seconds >= 2)
  }

  @Test func allListingsInOneProcess() throws {
    let run = try GuideRun()
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.lines.filter { $0.hasPrefix("# ") }.count == 20)
    #expect(run.lines.contains("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]"))
    #expect(run.lines.contains("the average is 2.5, on org.concourse.guide.caller"))
    #expect(run.lines.contains("cleaned up after 2 entries of the journal"))
  }

  @Test func theyAreNamed() throws {
    let run = try GuideRun("--list")
    #expect(run.status == 0)
    #expect(run.lines.count == 20)
    let unknown = try GuideRun("no-such-listing")
    #expect(unknown.status == 2)
    #expect(unknown.lines == ["guide: no listing is called 'no-such-listing'; 'guide --list' names them"])
  }
}
