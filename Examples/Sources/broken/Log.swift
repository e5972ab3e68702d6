import Concourse

/// A log holds its lines back until its file is open. One way out of `open` forgets to resume the queue.
enum Log {
  private static let queue = DispatchQueue(label: "log")

  static func start() {
    queue.suspend()
    open(path: "")
    for number in 1...250 { queue.async { print("line \(number)") } }
  }

  private static func open(path: String) {
    guard !path.isEmpty else { return }
    queue.resume()
  }
}
