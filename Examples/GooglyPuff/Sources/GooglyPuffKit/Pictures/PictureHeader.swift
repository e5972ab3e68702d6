/// The format and the size that a file claims, read before it is decoded. Incomplete and animated files are refused.
///
/// A decoder allocates memory for all pixels, and 30,000 × 30,000 of one color fit into a file of a few kilobytes. It
/// could also work for hours: a JPEG of a megabyte can have 30,000 scans.
package struct PictureHeader: Equatable, Sendable {
  package enum Format: Sendable { case jpeg, png, webp }

  package let format: Format
  package let width: Int
  package let height: Int

  /// 64 million pixels take 192 MB when decoded, twice that from a progressive JPEG. Few phones take larger photos.
  package static let maximumPixels = 64_000_000

  /// A progressive JPEG has about ten scans. Each takes a pass over all pixels, and can be a few bytes long.
  package static let maximumScans = 100

  package init(_ bytes: [UInt8]) throws(PictureError) {
    let cursor = Cursor(bytes)
    if cursor.has([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], at: 0) {
      (width, height) = try cursor.readPNG()
      format = .png
    } else if cursor.has([0xFF, 0xD8, 0xFF], at: 0) {
      (width, height) = try cursor.readJPEG()
      format = .jpeg
    } else if cursor.has("RIFF", at: 0), cursor.has("WEBP", at: 8) {
      (width, height) = try cursor.readWebP()
      format = .webp
    } else if cursor.has("GIF8", at: 0) {
      throw .animated
    } else {
      throw .notAPicture
    }
    guard width > 0, height > 0 else { throw .broken }
    // Each side first: the product of two 32-bit numbers may overflow where Int has 32 bits.
    guard width <= 65_535, height <= 65_535, width * height <= PictureHeader.maximumPixels else {
      throw .tooManyPixels(width: width, height: height)
    }
  }

  /// The largest divisor by which a JPEG can be scaled while decoding so that its longer side keeps `side` pixels.
  func divisor(for side: Int) -> Int {
    guard format == .jpeg else { return 1 }
    let longer = max(width, height)
    return [8, 4, 2].first { longer / $0 >= side } ?? 1
  }
}

/// Why a photo could not be added, in words for the page.
package enum PictureError: Error, Equatable {
  case notAPicture
  case animated
  case broken
  case tooManyScans
  case tooManyPixels(width: Int, height: Int)

  package var message: String {
    switch self {
    case .notAPicture: "not a picture that can be read here (JPEG, PNG or WebP)"
    case .animated: "animated pictures cannot be added"
    case .broken: "the picture is damaged or incomplete"
    case .tooManyScans: "the picture has more than \(PictureHeader.maximumScans) scans"
    case .tooManyPixels(let width, let height):
      "\(width) × \(height) pixels are too many (\(PictureHeader.maximumPixels / 1_000_000) million at most)"
    }
  }
}

/// The bytes of an untrusted file. Every read is checked against the bounds.
private struct Cursor {
  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  func has(_ expected: [UInt8], at place: Int) -> Bool {
    place >= 0 && place + expected.count <= bytes.count
      && bytes[place..<place + expected.count].elementsEqual(expected)
  }

  func has(_ expected: String, at place: Int) -> Bool { has(Array(expected.utf8), at: place) }

  private func number(at place: Int, bytes count: Int, bigEndian: Bool) throws(PictureError) -> Int {
    guard place >= 0, place + count <= bytes.count else { throw .broken }
    // No array: a file may consist of millions of markers.
    var number = 0
    for index in 0..<count {
      number = number << 8 | Int(bytes[place + (bigEndian ? index : count - 1 - index)])
    }
    return number
  }

  /// Walks the chunks up to `IEND`.
  func readPNG() throws(PictureError) -> (Int, Int) {
    guard has("IHDR", at: 12) else { throw .broken }
    let size = (
      try number(at: 16, bytes: 4, bigEndian: true), try number(at: 20, bytes: 4, bigEndian: true)
    )
    var place = 8
    while true {
      let length = try number(at: place, bytes: 4, bigEndian: true)
      if has("acTL", at: place + 4) { throw .animated }
      if has("IEND", at: place + 4) { return size }
      place += 12 + length
    }
  }

  /// Walks the segments and scans up to the end marker. Cameras append data of their own to that.
  func readJPEG() throws(PictureError) -> (Int, Int) {
    var size: (Int, Int)?
    var scans = 0
    var place = 2
    while true {
      guard try number(at: place, bytes: 1, bigEndian: true) == 0xFF else { throw .broken }
      let marker = try number(at: place + 1, bytes: 1, bigEndian: true)
      switch marker {
      // A fill byte.
      case 0xFF: place += 1
      // Markers without a length.
      case 0x01, 0xD0...0xD7: place += 2
      // The end.
      case 0xD9:
        guard let size, scans > 0 else { throw .broken }
        return size
      default:
        let length = try number(at: place + 2, bytes: 2, bigEndian: true)
        // A frame header. C4, C8 and CC are other segments.
        if 0xC0...0xCF ~= marker, ![0xC4, 0xC8, 0xCC].contains(marker) {
          guard size == nil else { throw .broken }
          size = (
            try number(at: place + 7, bytes: 2, bigEndian: true),
            try number(at: place + 5, bytes: 2, bigEndian: true)
          )
        }
        place += 2 + length
        // The start of a scan.
        if marker == 0xDA {
          scans += 1
          guard scans <= PictureHeader.maximumScans else { throw .tooManyScans }
          place = try endOfScan(from: place)
        }
      }
    }
  }

  /// The place of the next marker. Within a scan, FF is followed by 00 or is a restart marker.
  private func endOfScan(from start: Int) throws(PictureError) -> Int {
    var place = start
    while place + 1 < bytes.count {
      if bytes[place] == 0xFF, bytes[place + 1] != 0, !(0xD0...0xD7 ~= bytes[place + 1]) { return place }
      place += 1
    }
    throw .broken
  }

  func readWebP() throws(PictureError) -> (Int, Int) {
    guard try number(at: 4, bytes: 4, bigEndian: false) + 8 <= bytes.count else { throw .broken }
    if has("VP8X", at: 12) {
      if try number(at: 20, bytes: 1, bigEndian: false) & 0x02 != 0 { throw .animated }
      return (
        try number(at: 24, bytes: 3, bigEndian: false) + 1, try number(at: 27, bytes: 3, bigEndian: false) + 1
      )
    }
    if has("VP8L", at: 12) {
      let bits = try number(at: 21, bytes: 4, bigEndian: false)
      return ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    }
    guard has("VP8 ", at: 12) else { throw .broken }
    return (
      try number(at: 26, bytes: 2, bigEndian: false) & 0x3FFF,
      try number(at: 28, bytes: 2, bigEndian: false) & 0x3FFF
    )
  }
}
