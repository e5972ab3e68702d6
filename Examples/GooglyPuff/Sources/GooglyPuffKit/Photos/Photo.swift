/// All data of a photo except its pixels, as sent to the page.
package struct Photo: Sendable, Equatable, Encodable {
  package enum Stage: String, Sendable, Encodable {
    /// Being uploaded, downloaded or decoded.
    case arriving
    /// Its thumbnail can be shown.
    case ready
    case failed
  }

  package let id: Int
  package let batch: Int
  package let name: String
  package var stage = Stage.arriving
  /// Why it failed.
  package var reason: String?
  package var width = 0
  package var height = 0
  /// Nil until the search for faces is done.
  package var eyes: [Eye]?

  package init(id: Int, batch: Int, name: String) {
    self.id = id
    self.batch = batch
    self.name = Photo.displayName(name)
  }

  /// The center and radius of an eye, in pixels of the photo.
  package struct Eye: Sendable, Equatable, Codable {
    package let x: Double
    package let y: Double
    package let radius: Double
  }

  /// A name for display only: the last component of a path, without control characters, of at most 80 scalars.
  package static func displayName(_ name: String) -> String {
    let last = name.split(whereSeparator: { $0 == "/" || $0 == "\\" }).last ?? ""
    let visible = last.unicodeScalars.filter {
      switch $0.properties.generalCategory {
      // Some format characters reverse the direction of the text.
      case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse: false
      default: true
      }
    }
    let text = String(String.UnicodeScalarView(visible.prefix(80)))
    return text.isEmpty || text.allSatisfy({ $0 == "." }) ? "photo" : text
  }
}
