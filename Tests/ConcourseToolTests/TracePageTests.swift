import Glibc
import Testing

@testable import ConcourseRecording
@testable import ConcourseTool

private let browser = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].first { (path: String) in
  access(path, X_OK) == 0
}

/// The page of a trace in a browser that shows no window.
@Suite("Trace page in a browser", .enabled(if: browser != nil, "needs chromium"))
struct TracePageTests {

  /// The document after its scripts have run, `script` as the last.
  private func document(_ page: [UInt8], _ script: String) throws -> String {
    let folder = try TemporaryFolder()
    let script = Array("<script type=\"module\">\(script)</script>".utf8)
    let path = try folder.write(page + script, to: "trace.html")
    let arguments = [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
      "--user-data-dir=\(folder.path)/profile", "--window-size=1200,700", "--dump-dom", "file://\(path)",
    ]
    let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { close(nothing) }
    let program = try SpawnedProgram(
      try #require(browser), arguments.map { Array($0.utf8) },
      environment: ["HOME=\(folder.path)", "PATH=/usr/bin:/bin"], input: nothing)
    let result = try program.wait()
    #expect(result.ending == .exit(0), "\(result.complaint)")
    return result.text
  }

  private func sample() throws -> RecordedRun {
    let reader = try RecordingReader(BytesInMemory(RecordingBuilder.sample.bytes))
    reader.poll()
    return reader.recording()
  }

  @Test("it shows the verdict and the histograms, finds items, and says who submitted one")
  func use() throws {
    var tasks = TaskSummary()
    tasks.counts = TaskCounts([
      TaskInfo(address: 0, id: 1, state: .suspended, priority: 21, basePriority: 21, isCancelled: false)
    ])
    tasks.places = [
      .init(
        count: 1, state: .suspended, activity: "", sentence: "task 7 \"</script>\" awaits a stream",
        place: "read()  Read.swift:3")
    ]
    let page = TracePage.write(try sample(), tasks: TasksAtEnd(tasks)) { "function\($0)" }
    let text = try document(
      page,
      """
      const said = {}, aside = document.querySelector("aside"), search = document.getElementById("search");
      said.queues = [...aside.querySelectorAll(".queue b")].map(b => b.textContent);
      said.bars = aside.querySelectorAll("svg rect").length > 0;
      search.value = "FUNCTION4112";
      search.dispatchEvent(new Event("input"));
      said.found = document.getElementById("found").textContent;
      document.getElementById("next").click();
      said.item = [...aside.querySelectorAll("h2, dt, dd")].map(cell => cell.textContent).join("|");
      document.body.dataset.said = JSON.stringify(said);
      """)
    // The browser writes quotes in an attribute as entities.
    let attribute = text.split(separator: "data-said=\"").dropFirst().first
    let said = try #require(attribute?.split(separator: "\"").first)
    #expect(
      said.split(separator: "&quot;").joined(separator: "'")
        == "{'queues':['queue \\'a\\'\\n','queue 0xb0'],'bars':true,'found':'1 item','item':"
        + "'function4112|queue|queue \\'a\\'\\n|thread|worker 101|began|250 ns|took|250 ns|waited|150 ns|"
        + "submitted by|main 100|waits|semaphore, 100 ns'}")
    #expect(text.contains("<b>Parallelism</b>") && text.contains("<title>program – Concourse trace</title>"))
    #expect(text.contains("<p id=\"reason\">Nothing was slow: "))
    #expect(
      text.contains(
        "<b>Tasks at the end of the recording</b>1 suspended\ntask 7 \"&lt;/script&gt;\" awaits a stream at read()"
      ))
  }
}
