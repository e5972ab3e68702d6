import Foundation
import Testing

@testable import ConcourseModel

@Suite(.serialized)
struct LedgerTests {
  // MARK: The layout

  @Test func anAtomicHasNothingButItsStorage() {
    #expect(MemoryLayout<ConcourseModel.Atomic<Int>>.size == MemoryLayout<Synchronization.Atomic<Int>>.size)
    #expect(MemoryLayout<ConcourseModel.Atomic<Bool>>.size == MemoryLayout<Synchronization.Atomic<Bool>>.size)
    #expect(
      MemoryLayout<ConcourseModel.Atomic<UInt32>>.alignment
        == MemoryLayout<Synchronization.Atomic<UInt32>>.alignment)
    #expect(
      MemoryLayout<SeldomChanged<Int>>.size == MemoryLayout<Synchronization.Atomic<Int>>.size)
    #expect(MemoryLayout<WorkNode>.size == 48)
  }

  // MARK: Paths with known answers

  /// Two words on one line, or on two.
  private static func words(apart: Int) -> [UnsafeMutablePointer<ConcourseModel.Atomic<Int>>] {
    let memory = UnsafeMutableRawPointer.allocate(byteCount: 256, alignment: 64)
    return [0, apart].map {
      let word = (memory + $0).assumingMemoryBound(to: ConcourseModel.Atomic<Int>.self)
      word.initialize(to: ConcourseModel.Atomic(0))
      return word
    }
  }

  private static func moves(
    of words: [UnsafeMutablePointer<ConcourseModel.Atomic<Int>>], _ ledger: Ledger
  ) -> Int {
    let lines = Set(words.map { UInt(bitPattern: $0) / Ledger.lineSize })
    return lines.reduce(0) { $0 + (ledger.lines[$1]?.moves.values.reduce(0, +) ?? 0) }
  }

  /// Two threads that take turns, `turns` in all. What the threads capture moves too.
  private static func turns(
    _ turns: Int, _ body: @escaping (_ thread: Int, _ turn: Int) -> Void
  ) -> Ledger {
    let (result, ledger) = Model.ledger("turns") {
      // SAFETY: coroutines share one system thread.
      nonisolated(unsafe) var next = 0
      for thread in 0..<2 {
        Model.thread("turns") {
          while next < turns {
            if next % 2 == thread {
              body(thread, next)
              next += 1
            } else {
              Processor.pause()
            }
          }
        }
      }
      Model.run()
    }
    #expect(result.failure == nil, "\(result)")
    return ledger
  }

  @Test func twoCountersOnOneLineMoveAtEachTurn() {
    let words = Self.words(apart: 8)
    let ledger = Self.turns(10) { thread, _ in
      words[thread].pointee.wrappingAdd(1, ordering: .relaxed)
    }
    // The first turn finds the line in no cache.
    #expect(Self.moves(of: words, ledger) == 9)
  }

  @Test func twoPaddedCountersNeverMove() {
    let words = Self.words(apart: 64)
    let ledger = Self.turns(10) { thread, _ in
      words[thread].pointee.wrappingAdd(1, ordering: .relaxed)
    }
    #expect(Self.moves(of: words, ledger) == 0)
  }

  @Test func readersShareALineUntilAWriterTakesIt() {
    let words = Self.words(apart: 8)
    let ledger = Self.turns(12) { thread, turn in
      if turn == 6 {
        words[0].pointee.store(1, ordering: .relaxed)
      } else {
        _ = words[0].pointee.load(ordering: .relaxed)
      }
    }
    // Thread 1 reads what thread 0 has; then, at turn 6, thread 0 writes; then thread 1 reads again.
    #expect(Self.moves(of: words, ledger) == 3)
  }

  @Test func anObjectsHeaderMovesWithItsReferences() {
    let queue = ConcourseModel.DispatchQueue(label: "counted")
    let object = Unmanaged.passUnretained(queue)
    let ledger = Self.turns(10) { _, _ in _ = object.retain() }
    let moves = ledger.lines[UInt(bitPattern: object.toOpaque()) / Ledger.lineSize]!.moves
    #expect(moves.values.reduce(0, +) == 9)
  }

  // MARK: The engine

  @Test(arguments: ["sync, a queue each"]) func noLineMovesBetweenThreadsThatShareNothing(name: String) {
    let path = LedgerPath.all.first { $0.name == name }!
    let (result, ledger) = path.run(threads: 1)
    #expect(result.failure == nil, "\(result)")
    #expect(ledger.transfers == 0)
  }

  /// All threads that wait are in one registry.
  @Test func threadsThatWaitForTheirTurnDoNotCountReferencesToTheirRegistry() {
    let path = LedgerPath.all.first { $0.name == "sync, one queue" }!
    let (result, ledger) = path.run(threads: 64)
    #expect(result.failure == nil, "\(result)")
    let details = Self.details("sync", ledger)
    #expect(details.contains("references of DispatchQueue"), "\(details)")
    #expect(!details.contains("references of BlockedThreads"), "\(details)")
  }

  /// An event loop takes 64 events at a time. (20 s, so not with the limits.)
  @Test(.enabled(if: ProcessInfo.processInfo.environment["CONCOURSE_MODEL_LEDGER"] == "ledger"))
  func aPathMayHaveMoreEventsThanOneCallReports() {
    let path = LedgerPath.all.first { $0.name == "event of a pipe, a source each" }!
    let (result, ledger) = path.run(threads: 128)
    #expect(result.failure == nil, "\(result)")
    #expect(ledger.operations == 128 * 64)
  }

  // MARK: The limits

  /// Whether the limits are written instead: Scripts/model --limits --write.
  private static let writes = ProcessInfo.processInfo.environment["CONCOURSE_MODEL_LEDGER"] == "write"

  @Test func noPathMovesMoreLinesThanItsLimit() throws {
    var rows = try LedgerLimit.read()
    #expect(Set(rows.map(\.path)) == Set(LedgerPath.all.map(\.name)), "each path has a limit")
    for index in rows.indices {
      let row = rows[index]
      let (now, ledger) = try row.measure()
      switch row.verdict(now) {
      case _ where Self.writes: rows[index].known = now
      case .holds: break
      case .better: print("Clearly better: \(row.comparison(now)). Scripts/model --limits --write takes it.")
      case .exceeded:
        Issue.record("\(row.comparison(now))")
        print("The lines of \(Self.details(row.description, ledger))")
      }
    }
    if Self.writes { try LedgerLimit.write(rows) }
  }

  @Test(.disabled(if: writes), arguments: [2, 4, 16, 64]) func oneMoreSharedCounterIsFound(threads: Int)
    throws
  {
    let rows = try LedgerLimit.read().filter { $0.path == "async, global queue" }
    let row = try #require(rows.first { $0.threads == threads })
    let (now, _) = try LedgerLimit.measure(.withPlantedCounter, threads)
    #expect(row.verdict(now) == .exceeded, "\(row.comparison(now))")
  }

  // MARK: The table

  @Test(.enabled(if: ProcessInfo.processInfo.environment["CONCOURSE_MODEL_LEDGER"] == "ledger"))
  func table() {
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["CONCOURSE_SEED"].flatMap { UInt64($0) } ?? 1
    let wanted = environment["CONCOURSE_MODEL_THREADS"].map { text in
      text.split(separator: ",").compactMap { Int($0) }
    }
    let counts = wanted ?? [1, 2, 4, 8, 16, 32, 64]
    print("Lines that move between threads, per operation; seed \(seed)")
    print(Self.row("threads", counts.map(String.init)))
    var details = ""
    for path in LedgerPath.all {
      var cells: [String] = []
      for threads in counts {
        let (result, ledger) = path.run(threads: threads, seed: seed)
        guard result.failure == nil else {
          Issue.record("\(result)")
          cells.append("failed")
          continue
        }
        cells.append(Self.number(ledger.perOperation))
        if wanted != nil || [1, 2, 16, 64].contains(threads) {
          details += "\n" + Self.details("\(path.name), \(threads) threads", ledger)
        }
      }
      print(Self.row(path.name, cells))
    }
    print(details)
  }

  private static func row(_ name: String, _ cells: [String]) -> String {
    cells.reduce(name.padding(toLength: 32, withPad: " ", startingAt: 0)) {
      $0 + String(repeating: " ", count: max(1, 9 - $1.count)) + $1
    }
  }

  private static func number(_ value: Double) -> String {
    String(format: value < 0.1 ? "%.3f" : "%.2f", value)
  }

  // SAFETY: one test at a time.
  nonisolated(unsafe) private static var names = FieldNames()

  /// The lines that move most, by the names of their fields.
  private static func details(_ name: String, _ ledger: Ledger) -> String {
    var moves: [String: Int] = [:]
    var busiest: [String: (count: Int, others: String)] = [:]
    for line in ledger.lines.values where !line.moves.isEmpty {
      let count = line.moves.values.reduce(0, +)
      let name = names.name(of: line)
      moves[name, default: 0] += count
      if count > busiest[name]?.count ?? 0 { busiest[name] = (count, names.others(of: line)) }
    }
    let counted = Double(ledger.counted)
    var text =
      "\(name): copies taken \(number(Double(ledger.invalidations) / counted)), "
      + "wake-ups \(number(Double(ledger.wakes) / counted)) per operation\n"
    for (name, count) in moves.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }).prefix(8) {
      text += "  \(number(Double(count) / counted))  \(name)\(busiest[name]!.others)\n"
    }
    return text
  }
}
