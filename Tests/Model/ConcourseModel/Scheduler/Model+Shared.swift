// Values that the threads of a scenario share and whose accesses the model sees.

extension Model {
  /// A plain variable. Accesses that the engine's orderings leave unordered fail the execution as a race, even if the
  /// interleaving was harmless.
  // SAFETY: coroutines share one system thread, so accesses never overlap.
  final class Cell<Value>: @unchecked Sendable {
    private var stored: Value
    private let name: String
    private var record = PlainRecord()
    private let key = WordIdentity.nextKey()

    init(_ value: Value, _ name: String = "cell") {
      stored = value
      self.name = name
    }

    func read(file: StaticString = #fileID, line: UInt = #line) -> Value {
      guard let scheduler = Scheduler.arrive() else { return stored }
      scheduler.access(&record, isWrite: false, name, file, line)
      note(.read, scheduler, file, line)
      return stored
    }

    func write(_ value: Value, file: StaticString = #fileID, line: UInt = #line) {
      guard let scheduler = Scheduler.arrive() else {
        stored = value
        return
      }
      claim(scheduler, file, line)
      stored = value
    }

    /// Reads and writes in one step.
    func change(file: StaticString = #fileID, line: UInt = #line, _ body: (inout Value) -> Void) {
      if let scheduler = Scheduler.arrive() { claim(scheduler, file, line) }
      body(&stored)
    }

    private func claim(_ scheduler: Scheduler, _ file: StaticString, _ line: UInt) {
      scheduler.access(&record, isWrite: true, name, file, line)
      note(.write, scheduler, file, line)
    }

    private func note(_ kind: Step.Kind, _ scheduler: Scheduler, _ file: StaticString, _ line: UInt) {
      let none = WordBits(low: 0, high: 0)
      let address = UInt(bitPattern: ObjectIdentifier(self))
      scheduler.note(Step(kind, at: address, was: none, is: none, file: file, line: line))
      scheduler.partialOrder?.touch(key, .word, isWrite: kind == .write)
    }
  }

  /// A log of events in order. Its uses never race.
  // SAFETY: as for Cell.
  final class Log<Entry>: @unchecked Sendable {
    private var stored: [Entry] = []
    private let key = WordIdentity.nextKey()

    var entries: [Entry] {
      step(.read, #fileID, #line)
      return stored
    }

    func append(_ entry: Entry, file: StaticString = #fileID, line: UInt = #line) {
      step(.write, file, line)
      stored.append(entry)
    }

    private func step(_ kind: Step.Kind, _ file: StaticString, _ line: UInt) {
      guard let scheduler = Scheduler.arrive() else { return }
      let none = WordBits(low: 0, high: 0)
      let address = UInt(bitPattern: ObjectIdentifier(self))
      scheduler.note(Step(kind, at: address, was: none, is: none, file: file, line: line))
      scheduler.partialOrder?.touch(key, .word, isWrite: kind == .write)
    }
  }

  /// A section that one exclusive thread, or several shared ones, may be in. It guards client data: the exclusive threads
  /// write it and the shared ones read it, which must not race.
  // SAFETY: as for Cell.
  final class Section: @unchecked Sendable {
    private let log = Log<Int>()
    private var writers = 0
    private var readers = 0
    private var data = PlainRecord()

    func alone(file: StaticString = #fileID, line: UInt = #line, _ body: () -> Void = {}) {
      log.append(0)
      Model.check(writers == 0 && readers == 0, "not alone: \(writers) alone and \(readers) together")
      writers += 1
      access(isWrite: true, file, line)
      body()
      log.append(1)
      access(isWrite: true, file, line)
      writers -= 1
    }

    func together(file: StaticString = #fileID, line: UInt = #line, _ body: () -> Void = {}) {
      log.append(2)
      Model.check(writers == 0, "an exclusive thread is in the section")
      readers += 1
      access(isWrite: false, file, line)
      body()
      log.append(3)
      access(isWrite: false, file, line)
      readers -= 1
    }

    private func access(isWrite: Bool, _ file: StaticString, _ line: UInt) {
      Scheduler.current?.access(&data, isWrite: isWrite, "client data", file, line)
    }
  }
}
