import Concourse
import Glibc

/// A pool of two connections. A client that finds none leaves a continuation. One that gives its connection back does
/// not resume any of them.
actor Connections {
  private var free = 2
  private var waiting: [UnsafeContinuation<Void, Never>] = []

  func lease() async {
    if free > 0 { free -= 1 } else { await withUnsafeContinuation { waiting.append($0) } }
  }

  /// The bug: `waiting` is not looked at.
  func giveBack() { waiting = [] }

  static func start() {
    let connections = Connections()
    for number in 1...12 {
      Task(name: "client \(number)") {
        await connections.lease()
        await Task.yield()
        await connections.giveBack()
      }
    }
  }
}
