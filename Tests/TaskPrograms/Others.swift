import Concourse

/// Programs that block in jobs of an executor other than the global one.
enum Others {
  static let all: [Program] = [
    .hanging("preferred-queue") {
      let semaphore = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "render", attributes: .concurrent)
      return .init(
        start: { _, block in Task(executorPreference: queue) { block() } }, block: { _ in semaphore.wait() },
        release: { for _ in 0..<2 { semaphore.signal() } })
    }
  ]
}
