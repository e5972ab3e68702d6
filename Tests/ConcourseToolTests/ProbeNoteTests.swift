import Glibc
import Testing

@testable import ConcourseTool

/// The notes of the static probes in this program, which contains the engine.
@Suite("Probe notes")
struct ProbeNoteTests {
  private struct Probe {
    var provider: String
    var name: String
    var arguments: String
    var address: UInt
    var semaphore: UInt
  }

  /// Of `.note.stapsdt`: each note has three addresses, then provider, name and arguments.
  private func probes() throws -> [Probe] {
    let notes = try #require(try ElfImage(path: "/proc/self/exe").section(named: ".note.stapsdt"))
    var result: [Probe] = []
    var place = 0
    while place + 12 <= notes.count {
      let sizes = try [0, 4].map { Int(try #require(notes.number(at: place + $0, as: UInt32.self))) }
      try #require(notes.number(at: place + 8, as: UInt32.self) == 3)
      let content = place + 12 + (sizes[0] + 3) & ~3
      try #require(Array(notes[(place + 12)..<(place + 12 + sizes[0])]) == Array("stapsdt\0".utf8))
      let addresses = try [0, 16].map { try #require(notes.number(at: content + $0, as: UInt.self)) }
      let texts = notes[(content + 24)..<(content + sizes[1])].split(
        separator: 0, omittingEmptySubsequences: false
      ).map { String(decoding: $0, as: UTF8.self) }
      result.append(
        Probe(
          provider: texts[0], name: texts[1], arguments: texts[2], address: addresses[0],
          semaphore: addresses[1]))
      place = content + (sizes[1] + 3) & ~3
    }
    return result
  }

  @Test("each probe is one no-op instruction, and all share the semaphore that the engine reads")
  func notes() throws {
    let probes = try probes().filter { $0.provider == "concourse" }
    #expect(
      Set(probes.map(\.name)) == [
        "item_submitted", "item_started", "item_ended", "wait_begun", "wait_ended", "thread_made",
        "thread_parked", "thread_woken",
      ])
    #expect(probes.allSatisfy { $0.arguments.split(separator: " ").count == 3 })
    #expect(Set(probes.map(\.semaphore)).count == 1 && probes[0].semaphore != 0)

    #if arch(x86_64)
      // The first mapping of the program's file: its own addresses count from there.
      let mappings = String(decoding: try #require(FileContents.read("/proc/self/maps")), as: UTF8.self)
      let file = try #require(realpath("/proc/self/exe", nil))
      defer { free(file) }
      let name = String(cString: file)
      let first = try #require(mappings.split(separator: "\n").first { $0.hasSuffix(name) })
      let base = try #require(UInt(first.prefix { $0 != "-" }, radix: 16))
      for probe in probes {
        // SAFETY: the program's code, which can be read.
        let code = UnsafePointer<UInt8>(bitPattern: base + probe.address)!.pointee
        #expect(code == 0x90, "\(probe.name)")
      }
    #endif
  }
}
