import Testing

@testable import GooglyPuffKit

@Suite struct PictureHeaderTests {
  @Test func sizesAreReadWithoutDecoding() throws {
    #expect(try PictureHeader(sample("astronaut")).width == 512)
    #expect(try PictureHeader(sample("grace-hopper")).height == 600)
    let header = try PictureHeader(png(width: 640, height: 480))
    #expect(header.format == .png && header.width == 640 && header.height == 480)
    let webP =
      Array("RIFF".utf8) + [22, 0, 0, 0] + Array("WEBPVP8X".utf8) + [
        10, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 49, 0, 0,
      ]
    #expect(try PictureHeader(webP) == PictureHeader(webP))
    #expect(try PictureHeader(webP).width == 100)
    #expect(try PictureHeader(webP).height == 50)
  }

  @Test func aBombIsRefusedByItsHeader() {
    #expect(throws: PictureError.tooManyPixels(width: 30_000, height: 30_000)) {
      try PictureHeader(png(width: 30_000, height: 30_000))
    }
    #expect(throws: PictureError.tooManyPixels(width: 1, height: Int(UInt32.max))) {
      try PictureHeader(png(width: 1, height: Int(UInt32.max)))
    }
  }

  /// A progressive JPEG of 100 × 50 pixels, with the headers and the beginnings of scans only.
  private func jpeg(frames: Int = 1, scans: Int) -> [UInt8] {
    let frame: [UInt8] = [0xFF, 0xC2, 0, 11, 8, 0, 50, 0, 100, 1, 1, 0x11, 0]
    // A comment that looks like the end, a scan with an escaped FF and a restart marker.
    let scan: [UInt8] = [
      0xFF, 0xFE, 0, 4, 0xFF, 0xD9, 0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0, 0x12, 0xFF, 0, 0xFF, 0xD3, 0x34,
    ]
    return [0xFF, 0xD8] + (0..<frames).flatMap { _ in frame } + (0..<scans).flatMap { _ in scan }
      + [0xFF, 0xD9, 0xFF, 0xDA]
  }

  @Test func aJPEGOfManyScansIsRefused() throws {
    #expect(try PictureHeader(jpeg(scans: 1)).width == 100)
    #expect(try PictureHeader(jpeg(scans: 100)).height == 50)
    #expect(throws: PictureError.tooManyScans) { try PictureHeader(jpeg(scans: 101)) }
    #expect(throws: PictureError.broken) { try PictureHeader(jpeg(scans: 0)) }
    // The second size could be smaller than the first, which the decoder uses.
    #expect(throws: PictureError.broken) { try PictureHeader(jpeg(frames: 2, scans: 1)) }
  }

  @Test func animatedPicturesAreRefused() {
    #expect(throws: PictureError.animated) { try PictureHeader(Array("GIF89a".utf8)) }
    #expect(throws: PictureError.animated) {
      try PictureHeader(png(width: 9, height: 9, chunks: ["acTL", "IDAT", "IEND"]))
    }
    let webP =
      Array("RIFF".utf8) + [22, 0, 0, 0] + Array("WEBPVP8X".utf8) + [
        10, 0, 0, 0, 2, 0, 0, 0, 99, 0, 0, 49, 0, 0,
      ]
    #expect(throws: PictureError.animated) { try PictureHeader(webP) }
  }

  @Test func otherFilesAreRefusedAsNoPicture() {
    for text in ["", "x", "<html>", "%PDF-1.7", "RIFF....WAVE"] {
      #expect(throws: PictureError.notAPicture) { try PictureHeader(Array(text.utf8)) }
    }
  }

  @Test func aPictureThatBreaksOffIsBroken() throws {
    let whole = try sample("astronaut")
    for count in [3, 20, 200, 2_000, whole.count / 2, whole.count - 2] {
      #expect(throws: PictureError.broken) { try PictureHeader(Array(whole[..<count])) }
    }
    #expect(throws: PictureError.broken) { try PictureHeader(png(width: 5, height: 5, chunks: ["IDAT"])) }
    #expect(throws: PictureError.broken) { try PictureHeader(png(width: 0, height: 5)) }
  }

  @Test func changedBytesNeverDoMoreThanThrow() throws {
    var state: UInt64 = 7
    func next() -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33)
    }
    for whole in [
      Array(try sample("chelsea")[..<2_000]), png(width: 20, height: 20, chunks: ["tEXt", "IDAT", "IEND"]),
    ] {
      for _ in 0..<5_000 {
        var bytes = whole
        for _ in 0..<1 + next() % 8 { bytes[next() % bytes.count] = UInt8(truncatingIfNeeded: next()) }
        _ = try? PictureHeader(bytes)
      }
    }
  }
}
