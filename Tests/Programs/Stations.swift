#if CONCOURSE
  import ConcourseEvents
  import Glibc

  extension Soak {
    /// Each uses a part of the interface in rounds. A round returns how many items it submitted, after all
    /// have run, and has added to `ran` what its items counted.
    static var allStations: [(name: String, round: @Sendable (Soak, inout Dice) -> Int)] {
      let serial = DispatchQueue(label: "soak.serial")
      let total = Unprotected(0)
      return [
        ("serial 1", { $0.serial(serial, total, &$1) }), ("serial 2", { $0.serial(serial, total, &$1) }),
        ("barriers", { $0.barriers(&$1) }), ("hierarchy", { $0.hierarchy(&$1) }),
        ("sync", { $0.contendedSync(&$1) }),
        ("work items", { $0.workItems(&$1) }), ("semaphores", { $0.semaphores(&$1) }),
        ("timers", { $0.timers(&$1) }),
        ("user data", { $0.userData(&$1) }), ("pipes", { $0.pipes(&$1) }), ("channels", { $0.channels(&$1) }),
        ("data", { $0.data(&$1) }), ("signals", { $0.signals(&$1) }), ("programs", { $0.randomProgram(&$1) }),
      ]
    }

    /// One serial queue, two producers: each producer's order, and exclusion.
    private func serial(_ queue: DispatchQueue, _ total: Unprotected<Int>, _ dice: inout Dice) -> Int {
      let count = 4000
      let (last, own) = (Unprotected(-1), Unprotected(0))
      for index in 0..<count {
        let item: @Sendable () -> Void = { [self] in
          total.value += 1
          own.value += 1
          if last.value != index - 1 { expect(false, "serial: \(index) after \(last.value)") }
          last.value = index
        }
        switch index & 0xFF == 0 ? dice.below(8) : 8 {
        case 0: queue.sync(execute: item)
        case 1: queue.asyncAndWait(execute: item)
        case 2: queue.async(execute: DispatchWorkItem(flags: .barrier, block: item))
        case 3: queue.async(qos: .utility, flags: .enforceQoS, execute: item)
        case 4:
          queue.suspend()
          queue.async(execute: item)
          queue.resume()
        default: queue.async(execute: item)
        }
      }
      ran.add(queue.sync { own.value } + 1)
      return count + 1
    }

    /// Readers and barriers of a concurrent queue.
    private func barriers(_ dice: inout Dice) -> Int {
      let queue = DispatchQueue(label: "soak.concurrent", attributes: .concurrent)
      let group = DispatchGroup()
      let (left, right, count) = (Unprotected(0), Unprotected(0), Tally())
      for _ in 0..<1000 {
        if dice.hits(oneIn: 16) {
          queue.async(group: group, flags: .barrier) {
            left.value += 1
            right.value += 1
            count.add()
          }
        } else {
          queue.async(group: group) { [self] in
            if left.value != right.value { expect(false, "barriers: a reader saw half a barrier") }
            count.add()
          }
        }
      }
      empties(group, "barriers")
      ran.add(count.value)
      return 1000
    }

    /// Queues of all kinds above one serial queue, some made for the round, some suspended meanwhile.
    private func hierarchy(_ dice: inout Dice) -> Int {
      let root =
        dice.hits(oneIn: 4) ? DispatchWorkloop(label: "soak.workloop") : DispatchQueue(label: "soak.root")
      let middle = DispatchQueue(label: "soak.middle", attributes: .concurrent, target: root)
      let queues = (0..<4).map { number in
        DispatchQueue(
          label: "soak.leaf", qos: number == 3 ? .utility : .unspecified,
          attributes: number == 2 ? .concurrent : [],
          target: number == 0 ? root : middle)
      }
      let (group, inside) = (DispatchGroup(), Unprotected(0))
      for index in 0..<800 {
        let queue = queues[dice.below(4)]
        if index % 100 == 0 { queue.suspend() }
        queue.async(group: group) { inside.value += 1 }
        if index % 100 == 0 { queue.resume() }
      }
      empties(group, "hierarchy")
      ran.add(root.asyncAndWait { inside.value } + 1)
      return 801
    }

    /// A parallel loop whose iterations meet in a serial queue.
    private func contendedSync(_ dice: inout Dice) -> Int {
      let (queue, inside, visits) = (DispatchQueue(label: "soak.sync"), Unprotected(0), Tally())
      let iterations = 1 + dice.below(8)
      DispatchQueue.concurrentPerform(iterations: iterations) { _ in
        for _ in 0..<200 { queue.sync { inside.value += 1 } }
        visits.add()
      }
      ran.add(inside.value + visits.value)
      return iterations * 201
    }

    /// Items that are cancelled before they can run, waited for, and announced.
    private func workItems(_ dice: inout Dice) -> Int {
      let queue = DispatchQueue(label: "soak.items", attributes: dice.hits(oneIn: 2) ? .concurrent : [])
      let (group, notified, count) = (DispatchGroup(), DispatchSemaphore(value: 0), Tally())
      queue.suspend()
      let items = (0..<100).map { _ in DispatchWorkItem { count.add() } }
      for item in items { queue.async(group: group, execute: item) }
      let cancelled = items.filter { _ in dice.hits(oneIn: 3) }
      for item in cancelled { item.cancel() }
      items[99].notify(queue: .global()) { notified.signal() }
      group.notify(queue: .global(qos: .utility)) { notified.signal() }
      queue.resume()
      items[98].wait()
      empties(group, "work items")
      comes(notified, "work items")
      comes(notified, "work items")
      expect(
        count.value == 100 - cancelled.count,
        "work items: \(count.value) ran, \(cancelled.count) were cancelled")
      ran.add(count.value)
      return 100 - cancelled.count
    }

    /// At most three at once, with and without timeouts.
    private func semaphores(_ dice: inout Dice) -> Int {
      let (semaphore, inside, count, group) = (DispatchSemaphore(value: 3), Tally(), Tally(), DispatchGroup())
      for index in 0..<60 {
        DispatchQueue.global(qos: index % 2 == 0 ? .utility : .default).async(group: group) { [self] in
          if index % 4 == 0 {
            while semaphore.wait(timeout: .now() + .microseconds(100)) == .timedOut {}
          } else {
            semaphore.wait()
          }
          if inside.add() > 3 { expect(false, "semaphores: more than three at once") }
          inside.add(-1)
          count.add()
          semaphore.signal()
        }
      }
      empties(group, "semaphores")
      ran.add(count.value)
      return 60
    }

    /// Delayed items and a repeating timer.
    private func timers(_ dice: inout Dice) -> Int {
      let (queue, done) = (DispatchQueue(label: "soak.timers"), DispatchSemaphore(value: 0))
      let (late, fires) = (Unprotected(0), Unprotected(0))
      let begin = DispatchTime.now()
      for _ in 0..<4 {
        let delay = dice.below(2000)
        queue.asyncAfter(deadline: begin + .microseconds(delay)) { [self] in
          if DispatchTime.now() < begin + .microseconds(delay) {
            expect(false, "timers: an item came too early")
          }
          late.value += 1
          done.signal()
        }
      }
      let timer = DispatchSource.makeTimerSource(queue: queue) as! DispatchSource
      timer.setEventHandler { [unowned timer] in
        fires.value += 1
        if fires.value == 5 { timer.cancel() }
      }
      timer.setCancelHandler { done.signal() }
      timer.schedule(deadline: .now(), repeating: .microseconds(200))
      timer.activate()
      for _ in 0..<5 { comes(done, "timers") }
      withExtendedLifetime(timer) {
        let counts = queue.sync { (late.value, fires.value) }
        expect(counts.0 == 4 && counts.1 == 5, "timers: \(counts)")
        ran.add(counts.0 + counts.1)
      }
      return 9
    }

    /// Sums from many threads.
    private func userData(_ dice: inout Dice) -> Int {
      let (queue, done, sum) = (
        DispatchQueue(label: "soak.data"), DispatchSemaphore(value: 0), Unprotected(UInt(0))
      )
      let source = DispatchSource.makeUserDataAddSource(queue: queue) as! DispatchSource
      source.setEventHandler { [unowned source] in
        sum.value += source.data
        if sum.value >= 800 { source.cancel() }
      }
      source.setCancelHandler { done.signal() }
      source.activate()
      DispatchQueue.concurrentPerform(iterations: 4) { _ in for _ in 0..<100 { source.add(data: 2) } }
      comes(done, "user data")
      let value = queue.sync { sum.value }
      expect(value == 800, "user data: \(value)")
      ran.add(Int(value) / 2)
      return 400
    }

    /// Bytes through a pipe, from a write source to a read source. The items are the bytes.
    private func pipes(_ dice: inout Dice) -> Int {
      var ends: [Int32] = [0, 0]
      guard pipe(&ends) == 0 else { return refuse() }
      for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
      let (reader, writer, count) = (ends[0], ends[1], 2000)
      let (queue, done) = (DispatchQueue(label: "soak.pipe"), DispatchGroup())
      let (received, sent) = (Unprotected(0), Unprotected(0))
      let reading = DispatchSource.makeReadSource(fileDescriptor: reader, queue: queue) as! DispatchSource
      let writing = DispatchSource.makeWriteSource(fileDescriptor: writer, queue: queue) as! DispatchSource
      let size = 1 + dice.below(400)
      for (source, descriptor) in [(reading, reader), (writing, writer)] {
        done.enter()
        source.setCancelHandler {
          close(descriptor)
          done.leave()
        }
      }
      reading.setEventHandler { [unowned reading] in
        var bytes = [UInt8](repeating: 0, count: 256)
        let length = read(reader, &bytes, bytes.count)
        if length > 0 { received.value += length }
        if length == 0 { reading.cancel() }
      }
      writing.setEventHandler { [unowned writing] in
        let bytes = [UInt8](repeating: 7, count: min(size, count - sent.value))
        let length = write(writer, bytes, bytes.count)
        if length > 0 { sent.value += length }
        if sent.value == count { writing.cancel() }
      }
      reading.activate()
      writing.activate()
      empties(done, "pipes")
      ran.add(queue.sync { received.value })
      withExtendedLifetime((reading, writing)) {}
      return count
    }

    /// A file written and read through channels. The items are the operations.
    private func channels(_ dice: inout Dice) -> Int {
      var name = Array("/tmp/soak.XXXXXX".utf8CString)
      let file = mkstemp(&name)
      guard file >= 0 else { return refuse() }
      unlink(name)
      let done = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "soak.channel")
      let bytes = (0..<(1 + dice.below(60_000))).map { UInt8(truncatingIfNeeded: $0 &* 13) }
      let (back, failure) = (Unprotected(DispatchData.empty), Unprotected(Int32(0)))
      let channel = DispatchIO(type: .random, fileDescriptor: file, queue: queue) { _ in
        close(file)
        done.signal()
      }
      channel.write(offset: 0, data: bytes.withUnsafeBytes { DispatchData(bytes: $0) }, queue: queue) {
        isDone, _, error in
        if error != 0 { failure.value = error }
        if isDone { done.signal() }
      }
      comes(done, "channels")
      channel.read(offset: 0, length: bytes.count, queue: queue) { isDone, data, error in
        if error != 0 { failure.value = error }
        if let data { back.value.append(data) }
        if isDone { done.signal() }
      }
      comes(done, "channels")
      channel.close()
      comes(done, "channels")
      let (error, data) = queue.sync { (failure.value, back.value) }
      guard error == 0 else { return refuse() }
      expect(Array(data) == bytes, "channels: \(data.count) bytes came back of \(bytes.count)")
      ran.add(2)
      return 2
    }

    private func refuse() -> Int {
      refused.add()
      usleep(1000)
      return 0
    }

    /// Data whose buffers are released by deallocators; these are the items.
    private func data(_ dice: inout Dice) -> Int {
      let (count, group) = (Tally(), DispatchGroup())
      let buffers = 1 + dice.below(30)
      var (data, expected) = (DispatchData.empty, [UInt8]())
      for number in 0..<buffers {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 + dice.below(3000), alignment: 8)
        memset(buffer.baseAddress!, Int32(number), buffer.count)
        expected += buffer
        group.enter()
        // SAFETY: the deallocator is the last user of the buffer.
        nonisolated(unsafe) let memory = buffer
        let free: @Sendable () -> Void = {
          memory.deallocate()
          count.add()
          group.leave()
        }
        data.append(
          DispatchData(bytesNoCopy: UnsafeRawBufferPointer(buffer), deallocator: .custom(.global(), free)))
      }
      let range = dice.below(expected.count)..<expected.count
      expect(Array(data.subdata(in: range)) == Array(expected[range]), "data: a subrange is wrong")
      expect(
        data.withUnsafeBytes { (first: UnsafePointer<UInt8>) in first.pointee } == 0, "data: the map is wrong"
      )
      data = .empty
      empties(group, "data")
      ran.add(count.value)
      return buffers
    }

    /// Real-time signals queue, so each is counted.
    private func signals(_ dice: inout Dice) -> Int {
      let (number, count) = (Int32(44), 1 + dice.below(20))
      let (queue, total, done) = (
        DispatchQueue(label: "soak.signal"), Unprotected(0), DispatchSemaphore(value: 0)
      )
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue) as! DispatchSource
      let active = DispatchSemaphore(value: 0)
      source.setRegistrationHandler { active.signal() }
      source.setEventHandler { [unowned source] in
        total.value += Int(source.data)
        if total.value >= count { source.cancel() }
      }
      source.setCancelHandler { done.signal() }
      source.activate()
      comes(active, "signals")
      for _ in 0..<count { kill(getpid(), number) }
      comes(done, "signals")
      let value = queue.sync { total.value }
      expect(value == count, "signals: \(value) of \(count)")
      ran.add(value)
      return count
    }

    /// A random program, judged by the reference model.
    private func randomProgram(_ dice: inout Dice) -> Int {
      let program = Program(seed: dice.next() % 1_000_000_000, size: 60)
      for text in Executor.run(program, patience: 100).prefix(1) {
        expect(false, "program \(program.seed) of size 60: \(text)")
      }
      programs.add()
      return 0
    }
  }
#endif
