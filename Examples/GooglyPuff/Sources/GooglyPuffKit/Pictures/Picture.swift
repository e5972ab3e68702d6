import GooglyPuffVision

/// A decoded picture in OpenCV's memory. It takes several megabytes, so it is not copyable, and is freed as soon as its
/// owner's scope ends.
package struct Picture: ~Copyable {
  private let vision: GooglyVision
  private let handle: OpaquePointer

  /// The C functions over OpenCV; nil if this was built without OpenCV.
  // SAFETY: points to a constant of the C++ part.
  private static let vision: GooglyVision? = googly_vision().map { $0.pointee }

  /// One line that says which packages are missing; nil if none is.
  package static let obstacle: String? = {
    let install = "install it and run this again: apt-get install libopencv-dev opencv-data pkg-config"
    guard let vision else { return "this was built without OpenCV; \(install)" }
    return vision.prepare() ? nil : "opencv-data, which describes faces, is missing; \(install)"
  }()

  /// Decodes a file, and scales it down until its longer side has at most `side` pixels.
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

  /// Finds at most 64 faces and their eyes. `goOn` is called before each step, and stops the search by returning false.
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

  /// Encodes a JPEG, scaled down until its shorter side has at most `shorterSide` pixels (0: not scaled).
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
