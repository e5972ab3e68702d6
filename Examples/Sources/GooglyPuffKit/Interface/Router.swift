import Concourse
import Glibc

/// Maps requests to handlers: the page, its events, photos and batches.
struct Router: Sendable {
  let address: String
  let isLoopback: Bool
  let resources: Resources
  let internet: [String]
  let manager: PhotoManager
  let store: PictureStore
  let gallery: Gallery
  let batches: Batches
  let downloads: Downloads
  let darkroom: Darkroom

  func plan(_ head: RequestHead) -> Plan {
    guard Router.isTrusted(head, address: address, isLoopback: isLoopback) else {
      return .answer(.error(403, "only the page at http://\(address)/ may send requests"))
    }
    switch (head.method, head.path.count, head.path.first) {
    case ("GET", 1, "events"):
      let page = head.query["page"] ?? ""
      return .stream { [gallery] stream in gallery.open(stream, of: page) }
    case ("GET", 1, "internet"): return .answer(Response(body: JSON.encode(internet)))
    case ("GET", 1, "statistics"): return statistics
    case ("POST", 1, "batches"): return expectUploads
    case ("POST", 1, "downloads"): return download
    case (_, 2..., "photos"):
      guard let id = Int(head.path[1]) else { return .answer(.error(404, "there is no such photo")) }
      return photo(id, head)
    case ("GET", _, _):
      guard let resource = resources.resource(at: head.path) else { return .answer(.error(404, "not found")) }
      return .answer(resource)
    default: return .answer(.error(405, "that cannot be done"))
    }
  }

  /// Rejects requests from other pages in the browser, also those that resolve a name of their own to this machine.
  static func isTrusted(_ head: RequestHead, address: String, isLoopback: Bool) -> Bool {
    guard let host = head.headers["host"] else { return false }
    let port = address.split(separator: ":").last ?? ""
    // Browsers leave out port 80.
    let full = port == "80" && !host.hasSuffix(":80") ? "\(host):80" : host
    let names = ["127.0.0.1", "localhost", "[::1]"].map { "\($0):\(port)" }
    if isLoopback, full != address, !names.contains(full) { return false }
    guard let origin = head.headers["origin"] else { return true }
    return origin == "http://\(host)"
  }

  // MARK: One photo

  private func photo(_ id: Int, _ head: RequestHead) -> Plan {
    switch (head.method, head.path.count > 2 ? head.path[2] : nil) {
    case ("POST", nil): return receive(id)
    case ("POST", "open"):
      gallery.open(id)
      return .answer(Response(status: 204))
    case ("DELETE", nil):
      manager.remove(id)
      return .answer(Response(status: 204))
    case ("GET", let kind?):
      guard let kind = PictureStore.Kind(rawValue: kind), let bytes = store.read(kind, of: id) else {
        return .answer(.error(404, "there is no such photo"))
      }
      return .answer(
        Response(type: "image/jpeg", headers: ["Cache-Control": "private, max-age=3600"], body: bytes))
    default: return .answer(.error(405, "that cannot be done"))
    }
  }

  private func receive(_ id: Int) -> Plan {
    guard manager.photo(id)?.stage == .arriving else {
      return .answer(.error(410, "this photo is not expected any more", closes: true))
    }
    return .receive(
      Plan.Receiver(
        limit: Limits.fileBytes, tooLarge: Limits.fileTooLarge, takesTurn: true,
        received: { bytes, turn, answer in
          // Answered before the file is developed, so that the page can send the next one. The file keeps the turn.
          answer(Response(status: 204))
          darkroom.develop(bytes, as: id, turn: turn!)
        },
        broken: { reason in manager.fail(id, reason) }))
  }

  // MARK: Several

  private struct Expected: Decodable, Sendable {
    let page: String
    let names: [String]
  }

  private struct Addresses: Decodable, Sendable {
    let urls: [String]
  }

  private var expectUploads: Plan {
    json(Expected.self, count: \.names.count) { expected in
      guard let photos = batches.begin(expected.names) else { return full }
      gallery.promise(photos.map(\.id), by: expected.page)
      return Response(status: 201, body: JSON.encode(photos.map(\.id)))
    }
  }

  private var download: Plan {
    json(Addresses.self, count: \.urls.count) { addresses in
      guard let photos = batches.begin(addresses.urls) else { return full }
      for (photo, url) in zip(photos, addresses.urls) { downloads.fetch(url, as: photo.id) }
      return Response(status: 201, body: JSON.encode(photos.map(\.id)))
    }
  }

  private var full: Response {
    .error(507, "the gallery has room for \(manager.capacity) photos; remove some first")
  }

  private func json<Request: Decodable & Sendable>(
    _ type: Request.Type, count: @escaping @Sendable (Request) -> Int,
    _ serve: @escaping @Sendable (Request) -> Response
  ) -> Plan {
    .receive(
      Plan.Receiver(limit: Limits.jsonBytes) { bytes, _, answer in
        guard let request = JSON.decode(type, from: bytes), count(request) > 0 else {
          return answer(.error(400, "that names no photos"))
        }
        answer(serve(request))
      })
  }

  // MARK: Numbers

  private struct Statistics: Encodable {
    let mainQueue: MainQueue.Record
    let photos: Int
    let cachedBytes: Int
    let residentBytes: Int
  }

  private var statistics: Plan {
    .receive(
      Plan.Receiver { _, _, answer in
        MainQueue.async {
          let record = MainQueue.record
          DispatchQueue.global().async {
            let statistics = Statistics(
              mainQueue: record, photos: manager.count, cachedBytes: store.cachedBytes,
              residentBytes: residentBytes)
            answer(Response(body: JSON.encode(statistics)))
          }
        }
      })
  }

  private var residentBytes: Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var (total, resident) = (0, 0)
    // SAFETY: both numbers have the width that the format says.
    return withVaList([
      withUnsafeMutablePointer(to: &total) { $0 }, withUnsafeMutablePointer(to: &resident) { $0 },
    ]) {
      vfscanf(file, "%ld %ld", $0)
    } == 2 ? resident * Int(getpagesize()) : 0
  }
}
