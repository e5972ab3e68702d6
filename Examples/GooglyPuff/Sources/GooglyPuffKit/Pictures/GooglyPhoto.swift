import FoundationEssentials

/// What the search of a photo for faces has made: eyes, and two pictures that have them.
public struct GooglyPhoto: Codable, Sendable {
  package let eyes: [Photo.Eye]
  /// JPEG.
  package let photo: Data
  package let thumbnail: Data

  /// Searches a photo.
  /// - Parameter goOn: Called before each step; the search finds no more faces once it returns false.
  /// - Throws: ``PictureError`` if the bytes are no photo; a line that says what is missing without OpenCV.
  public init(of bytes: [UInt8], while goOn: () -> Bool = { true }) throws {
    // The first call loads what describes faces.
    if let obstacle = Picture.obstacle { throw PictureStore.Failure(description: obstacle) }
    let picture = try Picture(decoding: bytes, side: Darkroom.photoSide)
    let faces = picture.faces(while: goOn)
    picture.drawEyes(on: faces)
    eyes = faces.flatMap(Photo.Eye.both)
    photo = Data(try picture.encode())
    thumbnail = Data(try picture.encode(shorterSide: Darkroom.thumbnailSide, quality: 82))
  }
}

/// A program that has photos searched elsewhere. `Cluster/Demo` is one.
public struct Farm: Sendable {
  let search: @Sendable (_ photo: Int, _ name: String, _ bytes: [UInt8]) async throws -> GooglyPhoto
  let resource: @Sendable (_ name: String) -> (type: String, body: [UInt8])?

  /// - Parameters:
  ///   - search: Searches a photo, which has a number and a name.
  ///   - resource: What the page may load besides the app's files. The page loads `farm.js` and `farm.css`.
  public init(
    search: @escaping @Sendable (_ photo: Int, _ name: String, _ bytes: [UInt8]) async throws -> GooglyPhoto,
    resource: @escaping @Sendable (_ name: String) -> (type: String, body: [UInt8])?
  ) {
    self.search = search
    self.resource = resource
  }

  /// What the page's head has in addition.
  static let head = #"<link rel="stylesheet" href="/farm.css"><script type="module" src="/farm.js"></script>"#
}
