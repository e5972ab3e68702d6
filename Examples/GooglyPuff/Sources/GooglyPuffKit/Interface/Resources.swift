import Foundation

/// The page and the sample photos, read once. A request can name only what is in this table.
struct Resources: Sendable {
  private let table: [[String]: Response]
  private let farm: Farm?

  init(farm: Farm? = nil) throws {
    self.farm = farm
    var table: [[String]: Response] = [:]
    for (name, type) in [
      ("index.html", "text/html; charset=utf-8"), ("style.css", "text/css"),
      ("gallery.js", "text/javascript"),
      ("uploads.js", "text/javascript"), ("eyes.js", "text/javascript"), ("icon.svg", "image/svg+xml"),
      ("samples/astronaut.jpg", "image/jpeg"), ("samples/grace-hopper.jpg", "image/jpeg"),
      ("samples/chelsea.jpg", "image/jpeg"),
    ] {
      let file = Bundle.module.bundleURL.appending(path: "Page/\(name)")
      let path = name.split(separator: "/").map(String.init)
      table[path] = Response(type: type, body: [UInt8](try Data(contentsOf: file)))
    }
    if farm != nil {
      let page = String(decoding: table[["index.html"]]!.body, as: UTF8.self)
      table[["index.html"]]!.body = [UInt8](page.replacing("</head>", with: Farm.head + "\n</head>").utf8)
    }
    table[[]] = table[["index.html"]]
    self.table = table
  }

  func resource(at path: [String]) -> Response? {
    if let response = table[path] { return response }
    guard path.count == 1, let (type, body) = farm?.resource(path[0]) else { return nil }
    return Response(type: type, body: body)
  }

  /// What "Le Internet" offers by default: sample photos from this server, so that it works without a network.
  static func samples(at address: String) -> [String] {
    ["astronaut", "grace-hopper", "chelsea"].map { "http://\(address)/samples/\($0).jpg" }
  }
}
