// Random programs on the engine, and the faults that the reference model must find
// (Tests/Programs/README.md). They run in a process of their own: the engine's tests refuse system calls to
// the whole process.

import Glibc
import Testing

@testable import programs_on_concourse

private let sanitizer = getenv("CONCOURSE_SANITIZER").map { String(cString: $0) }

@Suite("Programs", .serialized)
struct ProgramsTests {
  @Test("S1, S3, S15, S20, S27-S28, S59, S66, S71, S106, S115-S118 random programs keep the contract")
  func random() {
    let count: UInt64 = sanitizer == nil ? 2000 : 100
    let seed = getenv("CONCOURSE_SEED").flatMap { UInt64(String(cString: $0)) } ?? Options([]).seed
    print("random programs: CONCOURSE_SEED=\(seed), \(count) programs of at most 40 operations")
    for number in seed..<seed + count {
      let wrong = Executor.run(Program(seed: number, size: 40))
      #expect(wrong.isEmpty, "Scripts/programs --seed \(number) --size 40")
      if !wrong.isEmpty { return }
    }
  }

  // What a fault loses is leaked, which a sanitizer reports.
  @Test(
    "a planted fault is found, and shrunk to a few operations", .enabled(if: sanitizer == nil),
    arguments: Fault.allCases)
  func plantedFault(_ fault: Fault) throws {
    // Enough for what never comes; a loaded machine that is slower finds a fault all the same.
    let patience = 1
    func fails(_ program: Program, attempts: Int) -> Bool {
      // Items that must not overlap stay longer at each attempt, so that on a loaded machine, too, they meet.
      (0..<attempts).contains {
        !Executor.run(program, fault: fault, patience: patience, pause: UInt32($0 * 20)).isEmpty
      }
    }
    let found = (1...4000 as ClosedRange<UInt64>).lazy.map { Program(seed: $0, size: 24) }.first {
      // Twice: a process that stands still for a second looks as if something were lost.
      fails($0, attempts: 1) && fails($0, attempts: 5)
    }
    let program = try #require(found, "\(fault) is not found")
    let small = Shrinker { fails($0, attempts: 20) }.shrink(program)
    print(
      "\(fault): \(program.operations.count) operations, shrunk to \(small.operations.count)\n\(small.listing())"
    )
    #expect(small.operations.count <= 6, "\(small.listing())")
    #expect(Executor.run(small).isEmpty, "the program is wrong without the fault too")
  }

  @Test("a seed and a size decide the program, and every part of it can be left out")
  func generator() {
    for seed in 1...200 as ClosedRange<UInt64> {
      let program = Program(seed: seed, size: 60)
      let numbers = program.operations.map(\.number)
      #expect(program.isSafe && numbers.count <= 60 && Set(numbers).count == numbers.count)
      #expect(Program(seed: seed, size: 60).listing() == program.listing())
      #expect(program.keeping(Set(numbers)).listing() == program.listing())
      let half = Set(numbers.filter { $0 % 2 == 0 })
      #expect(Set(program.keeping(half).operations.map(\.number)) == half)
    }
  }

  @Test("a listing is Swift that compiles", .enabled(if: sanitizer == nil))
  func listing() throws {
    let possible = (1...100 as ClosedRange<UInt64>).map { Program(seed: $0, size: 400) }.filter { program in
      program.operations.count > 150 && program.queues.allSatisfy { $0.kind != .workloop }
    }
    for program in possible.prefix(2) {
      var name = Array("/tmp/listing.XXXXXX.swift".utf8CString)
      let file = mkstemps(&name, 6)
      #expect(file >= 0)
      let path = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let text = program.listing()
      #expect(write(file, text, text.utf8.count) == text.utf8.count)
      close(file)
      #expect(system("swiftc -typecheck -suppress-warnings \(path)") == 0)
      unlink(path)
    }
  }
}
