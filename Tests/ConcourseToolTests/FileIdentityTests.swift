import Glibc
import Testing

@testable import ConcourseTool

/// Whether names may be taken from a file.
@Suite("the file that is mapped")
struct FileIdentityTests {
  private static func note(_ owner: String, _ id: [UInt8]) -> [UInt8] {
    UInt32(4).littleBytes + UInt32(id.count).littleBytes + UInt32(3).littleBytes + Array(owner.utf8) + [0]
      + id
  }

  /// A file whose second program header is of notes.
  private static func image(_ id: [UInt8]?, _ functions: [(String, UInt64, UInt64)] = []) -> [UInt8] {
    var image = ElfBuilder(functions: functions).bytes()
    guard let id else { return image }
    let notes = note("ABC", [1, 1, 1, 1]) + note("GNU", id)
    let place = UInt64(image.count)
    image.replaceSubrange(120..<124, with: UInt32(4).littleBytes)
    image.replaceSubrange(128..<136, with: place.littleBytes)
    image.replaceSubrange(136..<144, with: (ElfBuilder.loadAddress + place).littleBytes)
    image.replaceSubrange(152..<160, with: UInt64(notes.count).littleBytes)
    image.replaceSubrange(160..<168, with: UInt64(notes.count).littleBytes)
    return image + notes
  }

  /// Whether the file at the path of a mapping counts as the mapped one.
  private func isMapped(_ mapped: [UInt8], file: [UInt8]?) throws -> Bool {
    let folder = try TemporaryFolder()
    var core = CoreBuilder(segments: [(0x40_0000, 5, mapped, nil), (0x50_0000, 6, [0], nil)])
    core.mappedPath = folder.path + "/image"
    if let file { try folder.write(file, to: "image") }
    try folder.write(core.bytes, to: "core")
    let process = try CoreFile.open(folder.path + "/core")
    let image = try #require(MappedImage.all(of: process).first)
    return image.file(of: process) == core.mappedPath
  }

  private static let (first, second): ([UInt8], [UInt8]) = ([1, 2, 3, 4], [1, 2, 3, 5])

  @Test("the same build id, also in a file with other symbols")
  func same() throws {
    #expect(try isMapped(Self.image(Self.first), file: Self.image(Self.first)))
    #expect(try isMapped(Self.image(Self.first), file: Self.image(Self.first, [("f", 0x40_0000, 1)])))
    #expect(try isMapped(Self.image(nil), file: Self.image(nil)))
  }

  @Test("a file that has been replaced, or has gone, or is none")
  func other() throws {
    #expect(try !isMapped(Self.image(Self.first), file: Self.image(Self.second)))
    #expect(try !isMapped(Self.image(Self.first), file: Self.image(nil)))
    #expect(try !isMapped(Self.image(nil), file: Self.image(Self.second)))
    #expect(try !isMapped(Self.image(Self.first), file: nil))
    #expect(try !isMapped(Self.image(Self.first), file: Array("text".utf8)))
    #expect(try !isMapped(Self.image(nil), file: Array("text".utf8)))
  }

  @Test("a file with more tables than a program has is not read through")
  func manyEntries() throws {
    var file = Self.image(Self.first) + [UInt8](repeating: 0, count: 1 << 16)
    #expect(try isMapped(Self.image(Self.first), file: file))
    file.replaceSubrange(56..<58, with: UInt16(1000).littleBytes)
    #expect(try !isMapped(Self.image(Self.first), file: file))
  }

  @Test("the files of this process")
  func own() throws {
    let process = try TargetProcess.live(getpid(), stopsThreads: false)
    let library = try #require(MappedImage.all(of: process).first { $0.path.hasSuffix("/libc.so.6") })
    #expect(library.file(of: process)?.hasSuffix(library.path) == true)
  }
}
