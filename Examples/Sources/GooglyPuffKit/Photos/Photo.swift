/// A photo, as everything but its pixels: what the page is told about it.
package struct Photo: Sendable, Equatable, Encodable {
  package enum Stage: String, Sendable, Encodable {
    /// On its way here: being sent or downloaded.
    case arriving
    /// It can be seen.
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
  /// Nil until the photo has been searched for faces.
  package var eyes: [Eye]?

  package init(id: Int, batch: Int, name: String) {
    self.id = id
    self.batch = batch
    self.name = Photo.displayName(name)
  }

  /// An eye in the photo, in its pixels.
  package struct Eye: Sendable, Equatable, Encodable {
    package let x: Double
    package let y: Double
    package let radius: Double
  }

  /// A name to show: the last part of a path, without control characters, not too long. No file is ever called by it.
  package static func displayName(_ name: String) -> String {
    let last = name.split(whereSeparator: { $0 == "/" || $0 == "\\" }).last ?? ""
    let visible = last.unicodeScalars.filter {
      switch $0.properties.generalCategory {
      // Format characters too: some turn the direction of the text around.
      case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse: false
      default: true
      }
    }
    let text = String(String.UnicodeScalarView(visible.prefix(80)))
    return text.isEmpty || text.allSatisfy({ $0 == "." }) ? "photo" : text
  }
}
