import CExtendedAttributes
import Glibc
import Testing

@testable import ConcourseTool

/// Verdicts on handmade files; real programs are in the `concourse run` suite.
@Suite("ProgramCheck")
struct ProgramCheckTests {
  static let loader = "/lib64/ld-linux-x86-64.so.2"

  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func verdict(_ bytes: some Collection<UInt8>, mode: mode_t = 0o755) throws -> ProgramCheck.Verdict {
    let target = ElfTarget(is64Bit: true, isLittleEndian: true, machine: 62)
    let check = ProgramCheck(target: target, search: LibrarySearch())
    return try check.verdict(on: folder.write(bytes, to: "program", mode: mode))
  }

  @Test("each kind of program")
  func kinds() throws {
    let program = ElfBuilder(interpreter: Self.loader, needed: ["libdispatch.so"])
    #expect(try verdict(program.bytes()) == .switchable(path: ["libdispatch.so"]))
    #expect(
      try verdict(ElfBuilder(interpreter: Self.loader, needed: ["libc.so.6"]).bytes()) == .withoutDispatch)
    #expect(try verdict(ElfBuilder(isDynamic: false).bytes()) == .staticallyLinked)
    // Statically linked, but with a dynamic section: position-independent.
    #expect(try verdict(ElfBuilder().bytes()) == .staticallyLinked)
    #expect(
      try verdict(ElfBuilder(interpreter: "/lib/ld-musl-x86_64.so.1", needed: ["libdispatch.so"]).bytes())
        == .otherCLibrary(loader: "/lib/ld-musl-x86_64.so.1"))
    let arm = ElfBuilder(machine: 183, interpreter: "/lib/ld-linux-aarch64.so.1", needed: ["libdispatch.so"])
    #expect(
      try verdict(arm.bytes()) == .otherMachine(ElfTarget(is64Bit: true, isLittleEndian: true, machine: 183)))
    #expect(
      try verdict(ElfBuilder(machine: 3, elfClass: 1).bytes())
        == .otherMachine(ElfTarget(is64Bit: false, isLittleEndian: true, machine: 3)))
    #expect(try verdict(program.bytes().prefix(100)) == .damaged("its program headers are outside the file"))
    #expect(try verdict([]) == .notProgram)
    #expect(try verdict(Array("echo hello\n".utf8)) == .notProgram)
  }

  @Test(
    "a script's interpreter is named",
    arguments: [
      ("#!/bin/sh\n", "/bin/sh"), ("#! \t/usr/bin/env python3 -u\nprint()", "/usr/bin/env"),
      ("#!/bin/sh", "/bin/sh"),
    ])
  func scripts(_ text: String, _ interpreter: String) throws {
    #expect(try verdict(text.utf8) == .script(interpreter: interpreter))
  }

  @Test("a script without an interpreter is not a script")
  func emptyScript() throws {
    #expect(try verdict("#!\n/bin/sh".utf8) == .notProgram)
    #expect(try verdict("#! ".utf8) == .notProgram)
  }

  @Test("programs that run with other rights")
  func privileges() throws {
    let bytes = ElfBuilder(interpreter: Self.loader, needed: ["libdispatch.so"]).bytes()
    #expect(try verdict(bytes, mode: 0o4755) == .privileged(.setuid))
    #expect(try verdict(bytes, mode: 0o2755) == .privileged(.setgid))
    // Without the group's execute permission this bit concerns locks.
    #expect(try verdict(bytes, mode: 0o2745).isSwitchable)
  }

  @Test(
    "programs with capabilities of their own",
    .enabled(if: canGrantCapabilities, "only root may grant capabilities, and not everywhere"))
  func capabilities() throws {
    let bytes = ElfBuilder(interpreter: Self.loader, needed: ["libdispatch.so"]).bytes()
    let path = try folder.write(bytes, to: "capable", mode: 0o755)
    let check = ProgramCheck(
      target: ElfTarget(is64Bit: true, isLittleEndian: true, machine: 62), search: LibrarySearch())
    #expect(check.verdict(on: path).isSwitchable)
    try #require(Self.grantCapability(to: path))
    #expect(check.verdict(on: path) == .privileged(.capabilities))
  }

  private static var canGrantCapabilities: Bool {
    guard let folder = try? TemporaryFolder(), let path = try? folder.write([], to: "file") else {
      return false
    }
    return grantCapability(to: path)
  }

  /// Lets the program bind to low ports, in version 2 of the kernel's format.
  private static func grantCapability(to path: String) -> Bool {
    let value: [UInt8] =
      UInt32(0x0200_0001).littleBytes + UInt32(1 << 10).littleBytes + Array(repeating: 0, count: 12)
    return setxattr(path, "security.capability", value, value.count, 0) == 0
  }

  @Test("every refusal says what to do instead, in one line")
  func descriptions() {
    let target = ElfTarget(is64Bit: true, isLittleEndian: true, machine: 62)
    let refusals: [ProgramCheck.Verdict] = [
      .withoutDispatch, .ownDispatch(isConcourse: true), .ownDispatch(isConcourse: false), .staticallyLinked,
      .privileged(.setuid), .privileged(.setgid), .privileged(.capabilities), .script(interpreter: "/bin/sh"),
      .notProgram, .unreadable(EACCES), .damaged("cut off"), .otherMachine(target),
      .otherCLibrary(loader: "/l"),
    ]
    for refusal in refusals {
      #expect(!refusal.isSwitchable)
      #expect(refusal.description.contains(";"), "\(refusal.description)")
      #expect(!refusal.description.contains("\n"))
      let other = refusal.description(hasRunOptions: false)
      #expect(!other.contains("--force") && !other.contains("--children"), "\(other)")
    }
    #expect(
      ProgramCheck.Verdict.switchable(path: ["liba.so", "libdispatch.so"]).description
        == "can be switched: it needs libdispatch.so by way of liba.so")
  }
}
