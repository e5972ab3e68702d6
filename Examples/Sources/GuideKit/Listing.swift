import Concourse

/// Takes the lines that a listing prints.
package typealias Output = @Sendable (String) -> Void

/// One small program about one thing.
///
/// What it shows is a function beside it, which a program could take over as it is and which the tests
/// check; `run` calls that with some values and prints what comes of it.
package struct Listing: Sendable {
  /// What it is called on the command line.
  package let name: String
  /// What it shows, in a line.
  package let summary: String
  /// Runs it, on a thread other than the main thread, while the main thread serves the main queue. Returns
  /// when all of it has been printed.
  package let run: @Sendable (@escaping Output) -> Void

  init(_ name: String, _ summary: String, run: @escaping @Sendable (@escaping Output) -> Void) {
    self.name = name
    self.summary = summary
    self.run = run
  }

  /// All of them, in the order in which to read them.
  package static let all: [Listing] = [
    .simpleBlock, .blockResult, .capturingClosure,
    .urgencies, .serialQueue, .queueContext, .bothWays, .mainQueue, .suspension, .currentQueue,
    .completion, .parallelLoop, .descriptorSemaphore, .groupWait,
    .oneSerialQueue, .twoSerialQueues, .oneConcurrentQueue,
    .backgroundWork, .delayedPrompt, .photoManager,
  ]
}
