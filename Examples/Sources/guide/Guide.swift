import Concourse
import ExampleSupport
import Glibc

/// The program: runs the listings that are named, or all, and ends.
@main
struct Guide {
  private static let program = Program(
    name: "guide",
    help: """
      usage: guide [--list] [listing...]

      Runs the listings, or all of them, and prints what they print. --list prints their names.

      """)

  /// The main thread serves the main queue, as in any program with a main queue; the listings run on another thread.
  static func main() {
    let listings = program.options(listings(of:))
    DispatchQueue.global().async {
      for listing in listings {
        say("# \(listing.name): \(listing.summary)")
        listing.run { say($0) }
      }
      exit(0)
    }
    dispatchMain()
  }

  private static func listings(of arguments: inout Arguments) throws(UsageError) -> [Listing] {
    var listings: [Listing] = []
    while let argument = try arguments.next() {
      switch argument {
      case .option("--list"):
        for listing in Listing.all {
          let gap = String(repeating: " ", count: max(1, 18 - listing.name.utf8.count))
          say(listing.name + gap + listing.summary)
        }
        exit(0)
      case .option: throw arguments.unknownOption()
      case .name(let name):
        guard let listing = Listing.all.first(where: { $0.name == name.text }) else {
          throw UsageError("no listing is called '\(name.text)'; 'guide --list' prints the names")
        }
        listings.append(listing)
      }
    }
    return listings.isEmpty ? Listing.all : listings
  }

  /// Prints a line in one call, so that the lines of several threads do not mix.
  private static func say(_ line: String) { _ = writeAll(Bytes("\(line)\n".utf8), to: STDOUT_FILENO) }
}

/// Takes the lines that a listing prints.
typealias Output = @Sendable (String) -> Void

/// One small program about one thing.
///
/// Beside it is the function or type that it shows: a program can take that over, and the tests check it. `run` calls
/// it and prints the results.
struct Listing: Sendable {
  /// The name on the command line.
  let name: String
  let summary: String
  /// Runs on a thread other than the main thread, while the main thread serves the main queue. Returns when
  /// everything is printed.
  let run: @Sendable (@escaping Output) -> Void

  init(_ name: String, _ summary: String, run: @escaping @Sendable (@escaping Output) -> Void) {
    self.name = name
    self.summary = summary
    self.run = run
  }

  /// All listings, in the order in which to read them.
  static let all: [Listing] = [
    .simpleBlock, .blockResult, .capturingClosure,
    .urgencies, .serialQueue, .bothWays, .mainQueue, .suspension, .currentQueue, .completion, .queueContext,
    .parallelLoop, .descriptorSemaphore, .groupWait,
    .oneSerialQueue, .twoSerialQueues, .oneConcurrentQueue,
    .backgroundWork, .delayedPrompt, .photoManager,
  ]
}

/// A value behind a serial queue: the lock of Dispatch.
final class Guarded<Value>: @unchecked Sendable {  // SAFETY: GUARDED BY `queue`.
  private let queue = DispatchQueue(label: "org.concourse.guide.guarded")
  private var value: Value

  init(_ value: Value) { self.value = value }

  /// Calls `body` with the value; other calls wait meanwhile.
  func use<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    try queue.sync { try body(&value) }
  }
}
