import Concourse

/// Runs on Concourse what it submits itself.
@main
enum LibraryAuthor {
  static func main() {
    let queue = DispatchQueue(label: "author")
    let done = DispatchSemaphore(value: 0)
    queue.async { done.signal() }
    done.wait()
    print("queue: \(queue.sync { 42 })")
  }
}
