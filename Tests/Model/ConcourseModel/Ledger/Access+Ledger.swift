#if LEDGER
  /// One operation on an atomic word, in the ledger's build: its scheduling point and its entry in the ledger. It uses
  /// the newest store.
  struct Access {
    private let scheduler: Scheduler
    private let address: UInt
    private let size: Int
    private let bits: WordBits
    private let isPrivate: Bool
    private let file: StaticString
    private let line: UInt

    init?(
      at address: UInt, size: Int, file: StaticString, line: UInt, isQuiet: Bool, isLoad: Bool,
      bits: () -> WordBits
    ) {
      guard let scheduler = Scheduler.current, scheduler.isExecuting else { return nil }
      self.scheduler = scheduler
      self.address = address
      self.size = size
      self.file = file
      self.line = line
      isPrivate = scheduler.isPrivate(file)
      if isQuiet {
        scheduler.countStep()
      } else if !isPrivate {
        scheduler.arrive()
        // With time, the operation is done when the line has come; until then others go on, its holder among them.
        if Ledger.awaitLine(address / Ledger.lineSize, writes: !isLoad) { scheduler.arrive() }
      }
      self.bits = bits()
    }

    func load(_ ordering: Ordering) -> WordBits {
      enter(.load, now: bits)
      return bits
    }

    func store(_ new: WordBits, _ ordering: Ordering) -> Bool {
      enter(.store, now: new)
      return true
    }

    func update(_ ordering: Ordering, _ change: (WordBits) -> WordBits) -> (old: WordBits, isNewest: Bool) {
      enter(.update, now: change(bits))
      return (bits, true)
    }

    /// A compare-exchange that fails takes the line too, as the processor's instruction does.
    func compareExchange(
      _ expected: WordBits, _ desired: WordBits, _ success: Ordering, _ failure: Ordering
    ) -> (exchanged: Bool, original: WordBits, isNewest: Bool) {
      let isEqual = bits == expected
      enter(.update, now: isEqual ? desired : bits)
      return (isEqual, bits, true)
    }

    func compareInKernel(_ expected: WordBits) -> Bool {
      let sleeps = bits == expected
      enter(sleeps ? .wait : .failedWait, now: bits)
      return sleeps
    }

    private func enter(_ kind: Step.Kind, now: WordBits) {
      if !isPrivate { Ledger.step() }
      let file = file.description
      // The kernel's own lines are not followed.
      if file != "ConcourseModel/ModelKernel.swift" {
        Ledger.current.touch(
          address..<address + UInt(size), writes: kind == .store || kind == .update,
          .place(file: file, line: line))
      }
      if isPrivate { return }
      scheduler.finish(Step(kind, at: address, was: bits, is: now, file: self.file, line: line))
    }
  }

  extension Atomic {
    /// An access of the plain memory beside the word: the rest of a node. What else is beside words is not followed.
    func touchNeighbour(writing: Bool, _ file: StaticString, _ line: UInt) {
      let places = ["ConcourseModel/WorkNode.swift", "ConcourseModel/NodeMagazine.swift"]
      guard places.contains(file.description), MemoryLayout<Self>.size == 8 else { return }
      let next = UInt(MemoryLayout<Self>.size)
      Ledger.current.touch(
        address + next..<address + UInt(MemoryLayout<WorkNode>.size), writes: writing, .node)
    }
  }
#endif
