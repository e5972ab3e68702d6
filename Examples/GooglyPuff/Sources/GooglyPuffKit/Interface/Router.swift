import Concourse

/// Maps requests to handlers: the page, its events, photos and batches.
struct Router: Sendable {
  let address: String
  let resources: Resources
  let internet: [String]
  let manager: PhotoManager
  let store: PictureStore
  let gallery: Gallery
  let batches: Batches
  let downloads: Downloads
  let darkroom: Darkroom

  func plan(_ head: RequestHead) -> Plan {
    guard Router.isTrusted(head, address: address) else {
      return .answer(.error(403, "only the page at http://\(address)/ may send requests"))
    }
    switch (head.method, head.path.count, head.path.first) {
    case ("GET", 1, "events"):
      let (page, last) = (head.query["page"] ?? "", head.headers["last-event-id"].flatMap { Int($0) })
      return .stream { [gallery] stream in gallery.open(stream, of: page, lastNotice: last) }
    case ("GET", 1, "internet"): return .answer(Response(body: JSON.encode(internet)))
    case ("GET", 1, "statistics"):
      return .receive(
        Plan.Receiver { _, _, answer in
          MainQueue.async {
            let record = MainQueue.record
            DispatchQueue.global().async { answer(Response(body: JSON.encode(record))) }
          }
        })
    case ("POST", 1, "batches"): return expectUploads
    case ("POST", 1, "downloads"): return download
    case (_, 2..., "photos"):
      guard let id = Int(head.path[1]) else { return .answer(.error(404, "there is no such photo")) }
      return photo(id, head)
    case ("GET", _, _):
      return .answer(resources.resource(at: head.path) ?? .error(404, "not found"))
    default: return .answer(.error(405, "the method is not allowed"))
    }
  }

  /// Rejects requests from other pages in the browser, also those that resolve a name of their own to this machine.
  static func isTrusted(_ head: RequestHead, address: String) -> Bool {
    guard let host = head.headers["host"] else { return false }
    let port = address.split(separator: ":").last ?? ""
    // Browsers leave out port 80.
    let full = port == "80" && !host.hasSuffix(":80") ? "\(host):80" : host
    let names = ["127.0.0.1", "localhost", "[::1]"].map { "\($0):\(port)" } + [address]
    // Listening on all addresses, the machine has names that are not known here.
    let hasAnyName = address.hasPrefix("0.0.0.0:") || address.hasPrefix("[::]:")
    guard hasAnyName || names.contains(full) else { return false }
    return head.headers["origin"].map { $0 == "http://\(host)" } ?? true
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
      return .answer(Response(type: "image/jpeg", body: bytes))
    default: return .answer(.error(405, "the method is not allowed"))
    }
  }

  private func receive(_ id: Int) -> Plan {
    guard manager.claim(id) else {
      return .answer(.error(410, "this photo is not expected, or not any more", closes: true))
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
    begin(\Expected.names) { expected, photos in gallery.promise(photos.map(\.id), by: expected.page) }
  }

  private var download: Plan {
    begin(\Addresses.urls) { addresses, photos in
      for (photo, url) in zip(photos, addresses.urls) { downloads.fetch(url, as: photo.id) }
    }
  }

  /// Begins the batch that the request's body describes, and answers with the ids of its photos.
  private func begin<Request: Decodable & Sendable>(
    _ names: @escaping @Sendable (Request) -> [String],
    _ begun: @escaping @Sendable (Request, [Photo]) -> Void
  ) -> Plan {
    .receive(
      Plan.Receiver(limit: Limits.jsonBytes) { bytes, _, answer in
        // Off the connection's queue: a large batch takes a while.
        DispatchQueue.global(qos: .userInitiated).async {
          guard let request = JSON.decode(Request.self, from: bytes), !names(request).isEmpty else {
            return answer(.error(400, "the request cannot be read"))
          }
          guard let photos = batches.begin(names(request)) else {
            return answer(
              .error(507, "the gallery has room for \(manager.capacity) photos; remove some first"))
          }
          begun(request, photos)
          answer(Response(status: 201, body: JSON.encode(photos.map(\.id))))
        }
      })
  }
}
