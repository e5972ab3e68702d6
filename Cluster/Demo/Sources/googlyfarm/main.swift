// GooglyPuff as a farm: the page submits photos to a cluster queue, and workers in other processes, or on other machines,
// search them. `Cluster/Scripts/demo` starts both. The environment says what a process is:
//
//     FARM_SERVERS    the servers of NATS, separated by spaces
//     FARM_WORKER     the name of a worker; a process without one is the page, and takes the options of googlypuff
import Concourse
import ConcourseCluster
import FoundationEssentials
import Glibc
import GooglyPuffKit

/// An item: a scaled photo, of at most 1,600 pixels.
struct Item: Codable, Sendable {
  let photo: Int
  let bytes: Data
}

struct Answer: Codable, Sendable {
  let worker: String
  let googly: GooglyPhoto
}

/// A worker has got the photo.
struct Start: Codable, Sendable {
  let worker: String
  let photo: Int
}

struct Queues: Sendable {
  let photos: ClusterQueue<Item>
  /// Serial, so that the page learns of starts in their order.
  let starts: ClusterQueue<Start>

  init(servers: [String]) async throws {
    var options = ClusterQueueOptions()
    // Here workers die every few seconds. Elsewhere, so many attempts would let an item end many workers.
    options.attempts = 20
    options.patience = .seconds(2)
    options.retryDelay = .milliseconds(100)
    let cluster = try await Cluster.connect(servers: servers)
    photos = ClusterQueue(label: "photos", attributes: .concurrent, options: options, on: cluster)
    starts = ClusterQueue(label: "starts", options: options, on: cluster)
  }
}

/// Tells the script that this process does its part.
func sayReady() {
  print("ready")
  fflush(nil)
}

/// Starts a part of this process, which ends with its failure.
func begin(_ part: @escaping @Sendable () async throws -> Void) {
  Task.detached {
    do {
      try await part()
    } catch {
      print("googlyfarm: \(error)")
      exit(1)
    }
  }
}

let environment = ProcessInfo.processInfo.environment
let servers = (environment["FARM_SERVERS"] ?? "").split(separator: " ").map(String.init)
if servers.isEmpty {
  print("googlyfarm: FARM_SERVERS names no server; Cluster/Scripts/demo starts some")
  exit(2)
}
if let worker = environment["FARM_WORKER"] {
  begin {
    let queues = try await Queues(servers: servers)
    _ = try await queues.photos.handle(qos: .userInitiated) { item in
      try await queues.starts.async(Start(worker: worker, photo: item.photo))
      return Answer(worker: worker, googly: try GooglyPhoto(of: [UInt8](item.bytes)))
    }
    sayReady()
  }
  dispatchMain()
} else {
  // Detached: the main actor's tasks would wait for the toolchain's main queue.
  let page = FarmPage(queues: Task.detached { try await Queues(servers: servers) })
  begin {
    try await page.watch()
    sayReady()
  }
  runProgram(farm: page.farm)
}
