import Glibc
import Testing

@testable import ConcourseTool

@Suite("ElfImage")
struct ElfImageTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func image(_ bytes: [UInt8]) throws -> ElfImage {
    try ElfImage(path: folder.write(bytes, to: "image"))
  }

  private func failure(_ bytes: [UInt8]) throws -> ElfImage.Failure? {
    let path = try folder.write(bytes, to: "image")
    do {
      _ = try ElfImage(path: path)
      return nil
    } catch {
      return error
    }
  }

  @Test("the libraries that a program needs, and its search paths")
  func contents() throws {
    let image = try image(
      ElfBuilder(
        interpreter: "/lib64/ld-linux-x86-64.so.2", needed: ["liba.so", "libb.so.2"], soname: "libself.so",
        rpath: "/old", runpath: "$ORIGIN:/opt/lib"
      ).bytes())
    #expect(image.target == ElfTarget(is64Bit: true, isLittleEndian: true, machine: 62))
    #expect(image.interpreter == "/lib64/ld-linux-x86-64.so.2")
    #expect(image.isDynamic)
    #expect(image.needed == ["liba.so", "libb.so.2"])
    #expect(image.soname == "libself.so")
    #expect(image.rpath == ["/old"])
    #expect(image.runpath == ["$ORIGIN", "/opt/lib"])
  }

  @Test("a program without a dynamic section, and one with an empty section")
  func plain() throws {
    let bare = try image(ElfBuilder(isDynamic: false).bytes())
    #expect(!bare.isDynamic && bare.interpreter == nil && bare.needed.isEmpty)
    let empty = try image(ElfBuilder().bytes())
    #expect(empty.isDynamic && empty.needed.isEmpty && empty.soname == nil)
  }

  @Test("other machines are named, and their files not read further")
  func foreign() throws {
    #expect(try image(ElfBuilder(machine: 183).bytes()).target.name == "aarch64")
    let narrow = ElfTarget(is64Bit: false, isLittleEndian: true, machine: 3)
    #expect(try failure(ElfBuilder(machine: 3, elfClass: 1).bytes()) == .foreign(narrow))
    #expect(narrow.name == "x86 (32 bits)")
    let wide = ElfTarget(is64Bit: true, isLittleEndian: false, machine: 22)
    #expect(try failure(ElfBuilder(machine: 0x1600, order: 2).bytes()) == .foreign(wide))
  }

  @Test("files that are not ELF files")
  func notElf() throws {
    #expect(try failure([]) == .notElf)
    #expect(try failure([0x7F, 0x45, 0x4C, 0x46]) == .notElf)
    #expect(try failure(Array("#!/bin/sh\nexit 0\n    ".utf8)) == .notElf)
    #expect(throws: ElfImage.Failure.unreadable(ENOENT)) { try ElfImage(path: folder.path + "/absent") }
    #expect(throws: ElfImage.Failure.unreadable(EINVAL)) { try ElfImage(path: folder.path) }
    let pipe = try folder.place("pipe")
    try #require(mkfifo(pipe, 0o600) == 0)
    #expect(throws: ElfImage.Failure.unreadable(EINVAL)) { try ElfImage(path: pipe) }
  }

  @Test("names outside the file are damage")
  func offsetsOutside() throws {
    let dynamic = ElfBuilder(interpreter: "/lib/ld-linux.so", needed: ["liba.so"])
    for address: UInt64 in [0, 1, .max, ElfBuilder.loadAddress + 1 << 40] {
      var builder = dynamic
      builder.namesAddress = address
      #expect(try failure(builder.bytes()) == .damaged("its string table is outside the file"))
    }
    // Just before the end of the loaded part: the table is there, the names are not.
    var builder = dynamic
    builder.namesAddress = ElfBuilder.loadAddress + UInt64(dynamic.bytes().count) - 1
    #expect(try failure(builder.bytes()) == .damaged("the name of a library is outside the file"))
    var bytes = dynamic.bytes()
    bytes.replaceSubrange(32..<40, with: UInt64.max.littleBytes)
    #expect(try failure(bytes) == .damaged("its program headers are outside the file"))
    bytes.replaceSubrange(32..<40, with: UInt64(bytes.count - 1).littleBytes)
    #expect(try failure(bytes) == .damaged("its program headers are outside the file"))
  }

  @Test("a file truncated anywhere is refused or read in part, never a trap")
  func truncated() throws {
    let bytes = ElfBuilder(interpreter: "/lib/ld-linux.so", needed: ["liba.so"], runpath: "/x").bytes()
    #expect(try failure(bytes) == nil)
    for length in 0..<bytes.count {
      let expected = try failure(Array(bytes[..<length]))
      #expect(expected != nil, "at \(length)")
    }
  }

  @Test("with any byte changed, a file is read or refused, never a trap")
  func corrupted() throws {
    let bytes = ElfBuilder(interpreter: "/lib/ld-linux.so", needed: ["liba.so"], runpath: "/x").bytes()
    var refused = 0
    for index in bytes.indices {
      for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
        var changed = bytes
        changed[index] = value
        let path = try folder.write(changed, to: "image")
        guard let image = try? ElfImage(path: path) else {
          refused += 1
          continue
        }
        _ = image.section(named: RuntimeLibrary.sectionName)
        _ = image.definesFunction(in: .dynamic) { _ in true }
      }
    }
    #expect(refused > 0)
  }

  @Test("section headers that point anywhere count as absent")
  func brokenSections() throws {
    let path = try #require(FilePath.resolved("/proc/self/exe"))
    let intact = try ElfImage(path: path)
    #expect(intact.section(named: ".text")?.isEmpty == false)
    #expect(intact.section(named: ".tex") == nil)
    for change in [
      SectionHeaders(offset: .max, entrySize: 64, count: 4, namesIndex: 1),
      SectionHeaders(offset: intact.file.size - 64, entrySize: 64, count: 4, namesIndex: 1),
      SectionHeaders(offset: 0, entrySize: 64, count: .max, namesIndex: .max),
      SectionHeaders(offset: 0, entrySize: 40, count: 10, namesIndex: 1),
      SectionHeaders(offset: 8, entrySize: 64, count: 200, namesIndex: 3),
    ] {
      var image = intact
      image.sections = change
      #expect(image.section(named: ".text") == nil)
      #expect(!image.definesFunction(in: .full) { $0.isEqual(to: "main".utf8) })
    }
  }

  @Test("the version in Concourse's notes; damaged notes have none")
  func versionNote() {
    func note(_ owner: String, _ type: UInt32, _ content: [UInt8]) -> [UInt8] {
      func padded(_ bytes: [UInt8]) -> [UInt8] { bytes + Array(repeating: 0, count: -bytes.count & 3) }
      let name = Array((owner + "\0").utf8)
      return UInt32(name.count).littleBytes + UInt32(content.count).littleBytes + type.littleBytes
        + padded(name) + padded(content)
    }
    let others = note("Concourse", 1, [1, 0, 0, 0]) + note("GNU", 3, Array("9.9.9\0".utf8))
    let notes = others + note("Concourse", 3, Array("12.3.45\0".utf8))
    #expect(notes.concourseVersion == "12.3.45")
    #expect(others.concourseVersion == nil)
    for length in notes.indices { #expect(Array(notes[..<length]).concourseVersion == nil, "at \(length)") }
    for index in notes.indices {
      for value: UInt8 in [0, 1, 0x7F, 0xFF] {
        var changed = notes
        changed[index] = value
        _ = changed.concourseVersion
      }
    }
  }
}
