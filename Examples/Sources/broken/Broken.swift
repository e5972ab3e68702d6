import Concourse
import Glibc

// broken NAME: a program that hangs or is slow, for `concourse report`. Each file has one bug.

@main
enum Broken {
  private static let programs: [(name: String, start: @Sendable () -> Void)] = [
    ("deadlock", { Transfers.start() }),
    ("starved-pool", { Requests.start() }),
    ("never-resumed", { Log.start() }),
    ("slow-barrier", { Catalogue.start() }),
    ("busy-main-queue", { MainActor.assumeIsolated { Thumbnails.start() } }),
    ("task-cycle", { Prices.start() }),
    ("lost-continuation", { Connections.start() }),
    ("endless-stream", { Sensors.start() }),
    ("held-actor", { Accounts.start() }),
    ("blocking-tasks", { Journal.start() }),
  ]

  static func main() {
    let name = CommandLine.arguments.dropFirst().first ?? ""
    guard let program = programs.first(where: { $0.name == name }) else {
      print("usage: broken \(programs.map(\.name).joined(separator: "|"))")
      exit(2)
    }
    program.start()
    dispatchMain()
  }
}
