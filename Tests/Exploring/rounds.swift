// Items that wait for a flag in loops which count their rounds: up to a limit again and again, and without one.
import Dispatch
import Synchronization

final class Flags: Sendable {
  let isReady = Atomic(false)
  let total = Atomic(0)
}

@main struct Rounds {
  static func main() {
    let flags = Flags()
    DispatchQueue(label: "spins").async {
      var total = 1
      while !flags.isReady.load(ordering: .acquiring) {
        for round in 0..<1000 where !flags.isReady.load(ordering: .acquiring) { total &+= round }
      }
      flags.total.store(max(1, total), ordering: .releasing)
    }
    DispatchQueue.global().async { flags.isReady.store(true, ordering: .releasing) }
    var spins = 0
    while flags.total.load(ordering: .acquiring) == 0 { spins += 1 }
    precondition(spins >= 0)
  }
}
