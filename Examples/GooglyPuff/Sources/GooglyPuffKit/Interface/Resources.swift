import Foundation

/// The page and the sample photos, read once. A request can name only what is in this table.
struct Resources: Sendable {
  private let table: [[String]: Response]

  init() throws {
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
    table[[]] = table[["index.html"]]
    self.table = table
  }

  func resource(at path: [String]) -> Response? { table[path] }

  /// What "Le Internet" offers by default: sample photos from this server, so that it works without a network.
  static func samples(at address: String) -> [String] {
    ["astronaut", "grace-hopper", "chelsea"].map { "http://\(address)/samples/\($0).jpg" }
  }
}
