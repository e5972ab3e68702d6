import Testing

@testable import GooglyPuffKit

/// OpenCV through the C shim.
@Suite(
  .enabled(if: Picture.obstacle == nil, "needs OpenCV: apt-get install libopencv-dev opencv-data pkg-config"))
struct PictureTests {
  /// Where the eyes are in the sample photos, measured by hand.
  @Test(arguments: [
    ("astronaut", [(202.0, 100.0), (246.0, 103.0)]), ("grace-hopper", [(224.0, 184.0), (306.0, 182.0)]),
  ])
  func eyesAreFoundWhereTheFacesHaveThem(name: String, places: [(Double, Double)]) throws {
    let picture = try Picture(decoding: sample(name), side: 1_600)
    let faces = picture.faces(while: { true })
    let eyes = faces.flatMap(Photo.Eye.both).sorted { $0.x < $1.x }
    try #require(eyes.count == 2)
    for (eye, place) in zip(eyes, places) {
      #expect(abs(eye.x - place.0) < 14 && abs(eye.y - place.1) < 14, "\(eye) is not near \(place)")
    }
  }

  @Test func aCatHasNoFaceForThisPurpose() throws {
    #expect(try Picture(decoding: sample("chelsea"), side: 1_600).faces(while: { true }).isEmpty)
  }

  /// The browser test compares pixels.
  @Test func drawnEyesChangeThePhotoAndMakeNoFurtherFace() throws {
    let plain = try Picture(decoding: sample("astronaut"), side: 1_600)
    let googly = try Picture(decoding: sample("astronaut"), side: 1_600)
    googly.drawEyes(on: googly.faces(while: { true }))
    #expect(try plain.encode() != googly.encode())
    #expect(googly.width == 512 && googly.height == 512)
    #expect(try Picture(decoding: googly.encode(), side: 1_600).faces(while: { true }).count <= 1)
  }

  @Test func aPhotoIsScaledDownAndNeverUp() throws {
    let picture = try Picture(decoding: sample("grace-hopper"), side: 300)
    #expect(picture.height == 300 && picture.width == 256)
    let header = try PictureHeader(picture.encode(shorterSide: 64))
    #expect(header.format == .jpeg && header.width == 64 && header.height == 75)
    #expect(try Picture(decoding: sample("chelsea"), side: 5_000).width == 451)
  }

  @Test func whatTheDecoderRefusesIsBroken() throws {
    // The header and the end marker are intact, the pixels are not.
    #expect(throws: PictureError.broken) { _ = try Picture(decoding: png(width: 20, height: 20), side: 100) }
  }

  @Test func aSearchThatIsCalledOffFindsNothing() throws {
    #expect(try Picture(decoding: sample("astronaut"), side: 1_600).faces(while: { false }).isEmpty)
  }
}
