import GooglyPuffVision

/// A decoded picture, which OpenCV holds: several megabytes, so it is neither copied nor shared, and is freed at once
/// when its owner is done with it.
package struct Picture: ~Copyable {
  private let vision: GooglyVision
  private let handle: OpaquePointer

  /// The functions over OpenCV; nil on a machine where this was built without it.
  // SAFETY: points to a constant of the C++ part.
  private static let vision: GooglyVision? = googly_vision().map { $0.pointee }

  /// Why there can be no pictures: a line that says what to install. Nil if all is there.
  package static let obstacle: String? = {
    let install = "install it and run this again: apt-get install libopencv-dev opencv-data pkg-config"
    guard let vision else { return "this was built without OpenCV; \(install)" }
    return vision.prepare() ? nil : "opencv-data, which describes faces, is missing; \(install)"
  }()

  /// Decodes a file, and scales it down to `side` pixels if it is larger.
  package init(decoding bytes: [UInt8], side: Int) throws {
    let header = try PictureHeader(bytes)
    guard let vision = Picture.vision else { throw PictureError.notAPicture }
    let decoded = bytes.withUnsafeBufferPointer { buffer in
      // SAFETY: a header was read from the buffer, so it is not empty; the decoder stays within its count.
      vision.decode(buffer.baseAddress!, buffer.count, Int32(header.divisor(for: side)), Int32(side))
    }
    guard let decoded else { throw PictureError.broken }
    self.vision = vision
    handle = decoded
  }

  deinit { vision.release(handle) }

  package var width: Int { Int(vision.width(handle)) }
  package var height: Int { Int(vision.height(handle)) }

  /// The faces, at most 64, and where their eyes are. `goOn` is asked before each step of it.
  package func faces(while goOn: () -> Bool) -> [GooglyFace] {
    guard goOn() else { return [] }
    var faces = [GooglyFace](repeating: GooglyFace(), count: 64)
    let count = faces.withUnsafeMutableBufferPointer { buffer in
      // SAFETY: the buffer has the given count, which is not 0.
      vision.find_faces(handle, buffer.baseAddress!, Int32(buffer.count))
    }
    faces.removeLast(faces.count - Int(count))
    for index in faces.indices where goOn() { vision.find_eyes(handle, &faces[index]) }
    return faces
  }

  package func drawEyes(on faces: [GooglyFace]) {
    for var face in faces { vision.draw_eyes(handle, &face) }
  }

  /// A JPEG, whose shorter side has at most so many pixels if that is said.
  package func encode(shorterSide: Int = 0, quality: Int = 88) throws -> [UInt8] {
    var bytes: [UInt8] = []
    let done = withUnsafeMutablePointer(to: &bytes) { place in
      vision.encode(handle, Int32(shorterSide), Int32(quality), place) { context, start, count in
        // SAFETY: `context` is `place`, which is valid during the call, as are the bytes.
        context.assumingMemoryBound(to: [UInt8].self).pointee = Array(
          UnsafeBufferPointer(start: start, count: count))
      }
    }
    guard done else { throw PictureError.broken }
    return bytes
  }
}
