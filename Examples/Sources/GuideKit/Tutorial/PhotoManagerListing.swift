import Concourse

extension Listing {
  static let photoManager = Listing("photo-manager", "readers and a writer: a barrier in a concurrent queue")
  {
    print in
    let done = DispatchSemaphore(value: 0)
    let manager = PhotoManager.shared
    manager.whenAdded { count in
      print("\(count) photos, told on \(isMainThread ? "the main thread" : "a worker")")
      done.signal()
    }
    for photo in ["harbour", "lighthouse", "ferry"] { manager.add(photo) }
    print("\(manager.photos)")
    for _ in 1...3 { done.wait() }
  }
}
