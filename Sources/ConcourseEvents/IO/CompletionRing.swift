internal import CConcourse
internal import Glibc

/// Receives the result of a request to the ring.
protocol RingClient: AnyObject, Sendable {
  /// The request has been carried out. Called once per request, on a thread that polls, with no lock held.
  /// - Parameter result: the count of bytes, or the errno negated.
  func ringDidComplete(_ result: Int)
}

/// The process's ring: file reads and writes that the kernel carries out while no thread waits for them.
///
/// An eventfd that the event loop watches reports completions. Until then the kernel owns a request's memory, and the
/// client keeps it.
final class CompletionRing {
  enum Submission {
    /// The client gets the result later.
    case accepted
    /// There is no room, or the kernel did not take the request: the caller makes the transfer itself.
    case refused
  }

  private static let entries: UInt32 = 64
  /// The most bytes of one request.
  private static let largestRequest = 1 << 30

  private let lock = Lock(.completionRing)
  // GUARDED BY `lock`.
  private var ring: concourse_ring
  private var clients: [RingClient?]
  private var free: [Int]

  private let event: Int32

  private init(_ ring: concourse_ring, event: Int32) {
    self.ring = ring
    self.event = event
    // There are never more requests under way than the completion ring has room for.
    clients = Array(repeating: nil, count: Int(ring.entries))
    free = Array((0..<Int(ring.entries)).reversed())
  }

  /// Hands the kernel a request.
  /// - Parameters:
  ///   - bytes: what to write, or where to read to; valid until the client has the result.
  ///   - offset: the place in the file, or `Transfer.filePosition`.
  func submit(
    write: Bool, _ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int, offset: Int,
    for client: RingClient
  ) -> Submission {
    lock.lock()
    guard let slot = free.popLast() else {
      lock.unlock()
      return .refused
    }
    clients[slot] = client
    concourse_ring_prepare(
      &ring, write, descriptor, bytes, UInt32(min(count, Self.largestRequest)), Int64(offset), UInt64(slot))
    guard System.enter(&ring) == 1 else {
      concourse_ring_take_back(&ring)
      release(slot)
      lock.unlock()
      return .refused
    }
    lock.unlock()
    return .accepted
  }

  /// Call under the lock.
  private func takeCompletions() -> [(RingClient, Int)] {
    var found: [(RingClient, Int)] = []
    var token: UInt64 = 0
    var result: Int32 = 0
    while concourse_ring_take(&ring, &token, &result) {
      found.append((clients[Int(token)]!, Int(result)))
      release(Int(token))
    }
    return found
  }

  /// Call under the lock.
  private func release(_ slot: Int) {
    clients[slot] = nil
    free.append(slot)
  }
}

extension CompletionRing: FileWatchOwner {
  func fileIsReady(_ watch: FileWatch) {
    concourse_eventfd_clear(event)
    let found = lock.withLock { takeCompletions() }
    watch.rearm()
    for (client, result) in found { client.ringDidComplete(result) }
  }
}

// MARK: - The one ring of the process

extension CompletionRing {
  private enum Shared {
    case untried
    case made(CompletionRing)
    /// The kernel or the sandbox has no rings.
    case impossible
  }

  private static let sharedLock = Lock(.sharedRing)
  // SAFETY: GUARDED BY `sharedLock`.
  private nonisolated(unsafe) static var shared = Shared.untried

  /// The ring, made on first use; nil where the kernel refuses one. After a refusal for lack of descriptors or memory
  /// the next use tries again.
  static var current: CompletionRing? {
    sharedLock.withLock {
      switch shared {
      case .made(let ring): return ring
      case .impossible: return nil
      case .untried: break
      }
      let (ring, error) = make()
      if let ring { shared = .made(ring) }
      switch error {
      case 0, EMFILE, ENFILE, ENOMEM, EAGAIN: break
      default: shared = .impossible
      }
      return ring
    }
  }

  /// Makes a ring that the event loop watches.
  /// - Returns: nil and the errno if the system refuses.
  static func make() -> (ring: CompletionRing?, error: Int32) {
    var ring = concourse_ring()
    let descriptor = System.setUp(&ring, entries: entries)
    guard descriptor >= 0 else { return (nil, Int32(-descriptor)) }
    let event = System.createEvent()
    var failure = min(event, 0)
    if failure == 0 { failure = System.map(&ring) }
    if failure == 0 { failure = System.register(Int32(event), with: &ring) }
    if failure == 0 {
      let made = CompletionRing(ring, event: Int32(event))
      let watch = FileWatch(descriptor: Int32(event), interest: .read, owner: made)
      // The event loop now keeps the watch, and so the ring. Without a watch, completions would go unnoticed.
      if watch.install() == 0 && !watch.isAlwaysReady { return (made, 0) }
      watch.remove()
      failure = -Int(EPERM)
    }
    if event >= 0 { _ = System.close(Int32(event)) }
    concourse_ring_close(&ring)
    return (nil, Int32(-failure))
  }

  /// Makes the next use try again, for tests. A ring that exists stays alive for its users.
  static func forget() { sharedLock.withLock { shared = .untried } }
}

// SAFETY: see the guards above.
extension CompletionRing: @unchecked Sendable {}
