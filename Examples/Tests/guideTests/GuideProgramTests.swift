import Concourse
import Glibc
import TestSupport
import Testing

@testable import guide

/// The program, whose main thread serves the main queue.
@Suite("guide", .timeLimit(.minutes(10))) struct GuideProgramTests {
  @Test func itemsOfTheMainQueueRunOnTheMainThread() {
    let run = guide("main-queue", "background-work", "photo-manager")
    #expect(run.status == 0)
    // The listings' own lines; those of the two threads in either order.
    #expect(
      run.lines.filter { !$0.hasPrefix("#") }.sorted() == [
        "1 photos, reported on the main thread", "2 photos, reported on the main thread",
        "3 photos, reported on the main thread", "[\"harbour\", \"lighthouse\", \"ferry\"]",
        "here: a worker", "in a later one: the main thread", "in an item of the main queue: the main thread",
        "shown on the main thread: 4096 pixels",
      ])
  }

  @Test func thePromptComesAfterTwoSeconds() throws {
    let run = guide("delay")
    #expect(run.status == 0)
    let last = try #require(run.lines.last)
    let parts = last.split(separator: " ")
    // "… (after 2 s)"
    let seconds = try #require(Int(parts[parts.count - 2]), "\(last)")
    #expect(seconds >= 2)
  }

  @Test func allListingsInOneProcess() {
    let run = guide()
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.lines.filter { $0.hasPrefix("# ") }.count == 20)
    #expect(run.lines.contains("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]"))
    #expect(run.lines.contains("the average is 2.5, on org.concourse.guide.caller"))
    #expect(run.lines.contains("cleaned up after 2 entries of the journal"))
  }

  @Test func theyAreNamed() {
    let run = guide("--list")
    #expect(run.status == 0)
    #expect(run.lines.count == 20)
    let unknown = guide("no-such-listing")
    #expect(unknown.status == 2)
    #expect(
      unknown.lines == [
        "guide: no listing is called 'no-such-listing'; 'guide --list' prints the names",
        "Try 'guide --help'.",
      ])
  }

  /// A run to its end, with the lines of its output and its errors.
  private func guide(_ arguments: String...) -> (status: Int32, lines: [String]) {
    let run = ProgramRun("guide", arguments.map { Array($0.utf8) })
    let status = run.end()
    return (status, (run.outputText + run.errorText).split(separator: "\n").map { String($0) })
  }
}

/// What a listing prints, line by line.
func lines(_ body: (@escaping Output) -> Void) -> [String] {
  let lines = Guarded([String]())
  body { line in lines.use { $0.append(line) } }
  return lines.use { $0 }
}

extension DispatchSemaphore {
  /// Waits for an event that must come; only a failing test waits so long.
  func comes() -> Bool { wait(timeout: .now() + .seconds(60)) == .success }
}
