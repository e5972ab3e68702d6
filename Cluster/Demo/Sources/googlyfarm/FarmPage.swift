import ConcourseCluster
import Foundation
import GooglyPuffKit
import Synchronization

/// What the page shows beside the photos: which worker has which photo, and what was killed.
final class FarmPage: Sendable {
  struct State: Encodable {
    struct Worker: Encodable {
      var isAlive = true
      /// The photo that it has.
      var photo: Int?
      var name: String?
      var finished = 0
    }

    struct Photo: Encodable {
      var worker: String?
      var starts = 0
      var isFinished = false
    }

    var workers: [String: Worker] = [:]
    var servers: [String: Bool] = [:]
    var photos: [Int: Photo] = [:]
    /// What has happened, the latest last.
    var events: [String] = []
    var kills = 0
  }

  /// The connection is being made while the program starts.
  private let queues: Task<Queues, any Error>
  private let state = Mutex(State())
  private let names = Mutex<[Int: String]>([:])
  /// Photos of another run have other ids.
  private let run = UUID().uuidString

  init(queues: Task<Queues, any Error>) { self.queues = queues }

  var farm: Farm {
    Farm(
      search: { photo, name, bytes in try await self.search(photo, name, bytes) },
      resource: { name in self.resource(name) })
  }

  private func search(_ photo: Int, _ name: String, _ bytes: [UInt8]) async throws -> GooglyPhoto {
    names.withLock { $0[photo] = name }
    let answer: Answer = try await queues.value.photos.run(
      Item(photo: photo, bytes: Data(bytes)), id: "\(run)-\(photo)")
    state.withLock { state in
      state.photos[photo, default: State.Photo()].worker = answer.worker
      state.photos[photo]!.isFinished = true
      state.workers[answer.worker]?.finished += 1
      for worker in state.workers.keys where state.workers[worker]!.photo == photo {
        state.workers[worker]!.photo = nil
      }
    }
    return answer.googly
  }

  /// Takes the workers' reports from the cluster, and those of the script from standard input, whose end is the end of
  /// this process.
  func watch() async throws {
    Thread.detachNewThread {
      while let line = readLine() { self.report(line) }
      kill(getpid(), SIGTERM)
    }
    _ = try await queues.value.starts.handle { start in
      let name = self.names.withLock { $0[start.photo] }
      self.state.withLock { state in
        state.photos[start.photo, default: State.Photo()].starts += 1
        // The answer may have come before, or the worker have died.
        guard !state.photos[start.photo]!.isFinished, state.workers[start.worker]?.isAlive == true else {
          return
        }
        state.photos[start.photo]!.worker = start.worker
        state.workers[start.worker]!.photo = start.photo
        state.workers[start.worker]!.name = name
      }
    }
  }

  /// - Parameter line: "worker 1 killed" or "server 1 started".
  private func report(_ line: String) {
    let words = line.split(separator: " ").map(String.init)
    guard words.count == 3, ["worker", "server"].contains(words[0]) else { return }
    let isAlive = words[2] == "started"
    state.withLock { state in
      if words[0] == "worker" {
        let worker = state.workers[words[1], default: State.Worker()]
        let had = isAlive ? nil : worker.photo.map { _ in " while it had \(worker.name ?? "a photo")" }
        state.workers[words[1]] = State.Worker(isAlive: isAlive, finished: worker.finished)
        state.events.append(line + (had ?? ""))
      } else {
        state.servers[words[1]] = isAlive
        state.events.append(line)
      }
      if !isAlive { state.kills += 1 }
      state.events = state.events.suffix(4)
    }
  }

  private func resource(_ name: String) -> (type: String, body: [UInt8])? {
    switch name {
    case "farm": ("application/json", encoded)
    case "farm.js": ("text/javascript", file(name))
    case "farm.css": ("text/css", file(name))
    default: nil
    }
  }

  private var encoded: [UInt8] {
    do {
      return [UInt8](try JSONEncoder().encode(state.withLock { $0 }))
    } catch {
      fatalError("\(error)")
    }
  }

  private func file(_ name: String) -> [UInt8] {
    do {
      return [UInt8](try Data(contentsOf: Bundle.module.bundleURL.appending(path: "Page/\(name)")))
    } catch {
      fatalError("\(error)")
    }
  }
}
