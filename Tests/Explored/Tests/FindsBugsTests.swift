import ConcourseTesting
import Testing

/// Some of the programs that `concourse explore` finds the bugs of.
struct FindsBugsTests {
  /// The bug is found, and the mended twin does not fail.
  private func explored(_ name: String) async throws {
    let program = try #require(ExplorePrograms.all.first { $0.name == name })
    try await withKnownIssue {
      try await explore(schedules: 1_000) { await Self.run(program.body, mended: false) }
    } matching: {
      $0.comments.contains { $0.rawValue.contains("repeat it: CONCOURSE_REPLAY=") }
    }
    try await explore(schedules: 50) { await Self.run(program.body, mended: true) }
  }

  private static func run(_ body: ExplorePrograms.Body, mended: Bool) async {
    switch body {
    case .plain(let body): body(mended)
    case .task(let body): await body(mended)
    }
  }

  @Test func lostUpdate() async throws { try await explored("lost-update") }
  @Test func semaphoreTwice() async throws { try await explored("semaphore-twice") }
  @Test func syncCross() async throws { try await explored("sync-cross") }
  @Test func philosophers() async throws { try await explored("philosophers") }
  @Test func timerCancelled() async throws { try await explored("timer-cancelled") }
  @Test func actorReentrancy() async throws { try await explored("actor-reentrancy") }
  @Test func queueAndActor() async throws { try await explored("queue-and-actor") }
  @Test func doubleResume() async throws { try await explored("double-resume") }
  @Test func replyBeforeWait() async throws { try await explored("reply-before-wait") }
  @Test func groupOrder() async throws { try await explored("group-order") }
  @Test func weakChecked() async throws { try await explored("weak-checked") }
}
