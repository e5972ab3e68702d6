// Values that the threads of a scenario share and whose accesses the model sees.

extension Model {
  /// A plain variable. Accesses that the engine's orderings leave unordered fail the execution as a race, even if the
  /// interleaving was harmless.
  // SAFETY: coroutines share one system thread, so accesses never overlap.
  final class Cell<Value>: @unchecked Sendable {
    private var stored: Value
    private let name: String
    /// The last write and the reads since: coroutine and clock value.
    private var writer: (id: Int, count: UInt32)?
    private var readers: [Int: UInt32] = [:]

    init(_ value: Value, _ name: String = "cell") {
      stored = value
      self.name = name
    }

    func read(file: StaticString = #fileID, line: UInt = #line) -> Value {
      guard let scheduler = Scheduler.arrive() else { return stored }
      let me = scheduler.running!
      if let writer, me.clock[writer.id] < writer.count {
        scheduler.fail(.race, "\(name) is read at \(file):\(line) while \(writer.id) writes it")
      }
      readers[me.id] = me.clock[me.id]
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
      let me = scheduler.running!
      if let writer, me.clock[writer.id] < writer.count {
        scheduler.fail(.race, "\(name) is written at \(file):\(line) while \(writer.id) writes it")
      }
      for (id, count) in readers where me.clock[id] < count {
        scheduler.fail(.race, "\(name) is written at \(file):\(line) while \(id) reads it")
      }
      writer = (me.id, me.clock[me.id])
      readers = [:]
      note(.write, scheduler, file, line)
    }

    private func note(_ kind: Step.Kind, _ scheduler: Scheduler, _ file: StaticString, _ line: UInt) {
      let none = WordBits(low: 0, high: 0)
      let address = UInt(bitPattern: ObjectIdentifier(self))
      scheduler.note(Step(kind, at: address, was: none, is: none, file: file, line: line))
    }
  }

  /// A log of events in order. Appending never races.
  // SAFETY: as for Cell.
  final class Log<Entry>: @unchecked Sendable {
    private(set) var entries: [Entry] = []

    func append(_ entry: Entry, file: StaticString = #fileID, line: UInt = #line) {
      if let scheduler = Scheduler.arrive() {
        let none = WordBits(low: 0, high: 0)
        let address = UInt(bitPattern: ObjectIdentifier(self))
        scheduler.note(Step(.write, at: address, was: none, is: none, file: file, line: line))
      }
      entries.append(entry)
    }
  }

  /// A section that one exclusive thread, or several shared ones, may be in.
  // SAFETY: as for Cell.
  final class Section: @unchecked Sendable {
    private let log = Log<Int>()
    private var writers = 0
    private var readers = 0

    func alone(_ body: () -> Void = {}) {
      log.append(0)
      Model.check(writers == 0 && readers == 0, "not alone: \(writers) alone and \(readers) together")
      writers += 1
      body()
      log.append(1)
      writers -= 1
    }

    func together(_ body: () -> Void = {}) {
      log.append(2)
      Model.check(writers == 0, "an exclusive thread is in the section")
      readers += 1
      body()
      log.append(3)
      readers -= 1
    }
  }
}
