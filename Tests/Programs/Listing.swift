// A program as Swift source that can be compiled by itself.

extension Program {
  /// The source. It imports `module` and prints the beginning and the end of each item.
  func listing(importing module: String = "Dispatch") -> String {
    var writer = Writer(program: self, module: module)
    writer.writeProgram()
    return writer.text
  }
}

private struct Writer {
  let program: Program
  let module: String
  var text = ""
  private var depth = 0
  private var used: Set<String> = []

  init(program: Program, module: String) {
    self.program = program
    self.module = module
  }

  private mutating func line(_ line: String) { text += String(repeating: "  ", count: depth) + line + "\n" }

  private mutating func block(_ head: String, _ tail: String = "}", _ body: (inout Writer) -> Void) {
    line(head)
    depth += 1
    body(&self)
    depth -= 1
    line(tail)
  }

  mutating func writeProgram() {
    let threads = program.threads.filter { !$0.isEmpty }
    line("// Program \(program.seed) of size \(program.size), with \(program.operations.count) operations.")
    line("import \(module)")
    line("import Glibc")
    line("")
    block("func note(_ text: String) {") {
      $0.line("_ = (text + \"\\n\").withCString { write(1, $0, strlen($0)) }")
    }
    if threads.count > 1 {
      line("")
      block(
        "func startThread(_ body: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?) {"
      ) {
        $0.line("var thread = pthread_t()")
        $0.line("pthread_create(&thread, nil, body, nil)")
      }
    }
    line("")
    // Operations first: only the objects that they use are made.
    var body = self
    body.text = ""
    for (number, operations) in threads.enumerated() {
      if number == threads.count - 1 {
        body.write(operations)
      } else {
        body.block("startThread { _ in") {
          $0.write(operations)
          $0.line("return nil")
        }
      }
    }
    used = body.used
    writeObjects()
    text += body.text
    for (number, queue) in program.queues.enumerated()
    where queue.isInactive && used.contains("queue\(number)") {
      line("queue\(number).activate()")
    }
    line("sleep(1)")
  }

  private mutating func writeObjects() {
    for (number, queue) in program.queues.enumerated().reversed() where used.contains("queue\(number)") {
      if let target = queue.target { used.insert("queue\(target)") }
    }
    for (number, queue) in program.queues.enumerated() where used.contains("queue\(number)") {
      let attributes = [
        queue.kind == .concurrent ? ".concurrent" : nil, queue.isInactive ? ".initiallyInactive" : nil,
      ].compactMap(\.self).joined(separator: ", ")
      let target = queue.target.map { ", target: queue\($0)" } ?? ""
      switch queue.kind {
      case .global: line("let queue\(number) = DispatchQueue.global()")
      case .workloop: line("let queue\(number) = DispatchWorkloop(label: \"queue\(number)\")")
      default:
        if queue.moves { line("// This one made by dispatch_queue_create: it may change its target later.") }
        line(
          "let queue\(number) = DispatchQueue(label: \"queue\(number)\", attributes: [\(attributes)]\(target))"
        )
      }
    }
    for number in program.groups.indices where used.contains("group\(number)") {
      line("let group\(number) = DispatchGroup()")
    }
    for number in 0..<program.locks where used.contains("lock\(number)") {
      line("let lock\(number) = DispatchSemaphore(value: 1)")
    }
    for number in program.gates.indices where used.contains("gate\(number)") {
      line("let gate\(number) = DispatchSemaphore(value: 0)")
    }
    for (number, isBarrier) in program.items.enumerated() where used.contains("repeated\(number)") {
      let flags = isBarrier ? "(flags: .barrier)" : ""
      line("let repeated\(number) = DispatchWorkItem\(flags) { note(\"repeated \(number)\") }")
    }
    for operation in program.operations where used.contains("item\(operation.number)") {
      // Threads refer to it.
      line("nonisolated(unsafe) var item\(operation.number): DispatchWorkItem?")
    }
    for (number, source) in program.sources.enumerated() where used.contains("source\(number)") {
      let kind = "\(source.kind)"
      let name = "UserData\(kind.prefix(1).uppercased())\(kind.dropFirst())Source"
      line("let source\(number) = DispatchSource.make\(name)(queue: queue\(source.queue))")
      line("source\(number).setEventHandler { note(\"source \(number): \\(source\(number).data)\") }")
      line("source\(number).activate()")
    }
  }

  /// The name of an object, which is used from now on.
  private mutating func name(_ kind: String, _ number: Int) -> String {
    used.insert("\(kind)\(number)")
    return "\(kind)\(number)"
  }

  private mutating func write(_ operations: [Operation]) {
    for operation in operations { write(operation) }
  }

  private mutating func writeInside(_ operation: Operation) {
    line("note(\"begin \(operation.number)\")")
    write(operation.inside)
    line("note(\"end \(operation.number)\")")
  }

  private mutating func write(_ operation: Operation) {
    let number = operation.number
    switch operation.verb {
    case .async(let queue, let isBarrier, let isEnforced, let group):
      let list = arguments(group.map { name("group", $0) }, isBarrier, isEnforced)
      writeCall(operation, on: name("queue", queue), "async\(list) {")
    case .sync(let queue, let isBarrier):
      writeCall(operation, on: name("queue", queue), "sync\(isBarrier ? "(flags: .barrier)" : "") {")
    case .asyncAndWait(let queue, let isBarrier):
      let flags = isBarrier ? "(flags: .barrier)" : ""
      // The toolchain's Swift interface lacks `asyncAndWait`.
      let call = module == "Dispatch" ? "sync" : "asyncAndWait"
      writeCall(operation, on: name("queue", queue), "\(call)(execute: DispatchWorkItem\(flags) {", "})")
    case .after(let queue, let delay):
      let call = "asyncAfter(deadline: .now() + .microseconds(\(delay))) {"
      writeCall(operation, on: name("queue", queue), call)
    case .item(let queue, let use): write(operation, queue, use)
    case .cancelItem(let other):
      if program.operations.contains(where: { $0.number == other }) {
        line("\(name("item", other))?.cancel()")
      }
    case .submit(let item, let queue):
      line("\(name("queue", queue)).async(execute: \(name("repeated", item)))")
    case .perform(let item): line("\(name("repeated", item)).perform()")
    case .cancel(let item): line("\(name("repeated", item)).cancel()")
    case .enter(let group, let queue):
      let group = name("group", group)
      line("\(group).enter()")
      writeCall(operation, on: name("queue", queue), "async {", last: "\(group).leave()")
    case .notify(let group, let queue):
      writeCall(operation, on: name("group", group), "notify(queue: \(name("queue", queue))) {")
    case .waitGroup(let group): line("\(name("group", group)).wait()")
    case .pollGroup(let group, let delay):
      line("_ = \(name("group", group)).wait(timeout: .now() + .microseconds(\(delay)))")
    case .locked(let lock):
      let lock = name("lock", lock)
      line("\(lock).wait()")
      writeInside(operation)
      line("\(lock).signal()")
    case .tryLocked(let lock, let delay):
      let lock = name("lock", lock)
      let call = "wait(timeout: .now() + .microseconds(\(delay))) == .success {"
      writeCall(operation, on: "if \(lock)", call, last: "\(lock).signal()")
    case .handOver(let gate, let queue):
      let gate = name("gate", gate)
      writeCall(operation, on: name("queue", queue), "async {", last: "\(gate).signal()")
      line("\(gate).wait()")
    case .suspended(let queue): writeScope(operation, name("queue", queue))
    case .suspendedSource(let source): writeScope(operation, name(source: source))
    case .merge(let source, let value):
      line("\(name(source: source)).\(program.sources[source].kind)(data: \(value))")
    case .cancelSource(let source): line("\(name(source: source)).cancel()")
    case .retarget(let queue, let target):
      line("\(name("queue", queue)).setTarget(queue: \(name("queue", target)))")
    case .loop(let count):
      line("DispatchQueue.concurrentPerform(iterations: \(count)) { note(\"loop \(number): \\($0)\") }")
    case .data: write(DataProgram(operation))
    case .step: break
    case .work: line("sched_yield()")
    }
  }

  private func arguments(_ group: String?, _ isBarrier: Bool, _ isEnforced: Bool) -> String {
    let flags = [isBarrier ? ".barrier" : nil, isEnforced ? ".enforceQoS" : nil].compactMap(\.self)
    var arguments = group.map { ["group: \($0)"] } ?? []
    if isEnforced { arguments.append("qos: .userInitiated") }
    if !flags.isEmpty { arguments.append("flags: [\(flags.joined(separator: ", "))]") }
    return arguments.isEmpty ? "" : "(\(arguments.joined(separator: ", ")))"
  }

  /// A call whose closure does what is inside an operation, and then `last`.
  private mutating func writeCall(
    _ operation: Operation, on object: String, _ call: String, _ tail: String = "}", last: String? = nil
  ) {
    block("\(object).\(call)", tail) {
      $0.writeInside(operation)
      if let last { $0.line(last) }
    }
  }

  private mutating func writeScope(_ operation: Operation, _ name: String) {
    line("\(name).suspend()")
    writeInside(operation)
    line("\(name).resume()")
  }

  private mutating func name(source: Int) -> String {
    _ = name("queue", program.sources[source].queue)
    return name("source", source)
  }

  private mutating func write(_ operation: Operation, _ queue: Int, _ use: Operation.ItemUse) {
    let item = name("item", operation.number)
    let queue = name("queue", queue)
    block("\(item) = DispatchWorkItem\(use.barrier ? "(flags: .barrier)" : "") {") {
      $0.writeInside(operation)
    }
    if let notified = use.notifies {
      line("\(item)!.notify(queue: \(name("queue", notified))) { note(\"notified \(operation.number)\") }")
    }
    line("\(queue).async(\(use.group.map { "group: \(name("group", $0)), " } ?? "")execute: \(item)!)")
    if use.cancels { line("\(item)!.cancel()") }
    if use.waits { line("\(item)!.wait()") }
  }

  private mutating func write(_ data: DataProgram) {
    block("do {") { writer in
      writer.line("var data = [DispatchData](repeating: .empty, count: 4)")
      writer.line("_ = data")
      for (step, operation) in data.steps {
        switch operation {
        case .make(let to, let count, let isOwned):
          let bytes = "(0..<\(count)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ \(step * 31 + 1)) }"
          if isOwned, count > 0 {
            writer.line("let bytes\(step) = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: \(count))")
            writer.line("_ = bytes\(step).initialize(from: \(bytes))")
            writer.line("data[\(to)] = DispatchData(")
            writer.line("  bytesNoCopy: UnsafeRawBufferPointer(bytes\(step)),")
            writer.line("  deallocator: .custom(.global(), { bytes\(step).deallocate() }))")
          } else {
            writer.line("data[\(to)] = (\(bytes)).withUnsafeBytes { DispatchData(bytes: $0) }")
          }
        case .append(let from, let to): writer.line("data[\(to)].append(data[\(from)])")
        case .subrange(let to, let from, let a, let b):
          writer.line("data[\(to)] = data[\(from)].subdata(in: \(writer.range(from, a, b)))")
        case .map(let from):
          writer.show(
            "data[\(from)].withUnsafeBytes { (first: UnsafePointer<UInt8>) in first.pointee }", from)
        case .regions(let from):
          writer.line(
            "data[\(from)].enumerateBytes { region, offset, _ in note(\"\\(offset): \\(Array(region))\") }")
        case .stop(let from): writer.line("data[\(from)].enumerateBytes { _, _, stop in stop = true }")
        case .region(let from, let at):
          writer.show("data[\(from)].region(location: \(at) % data[\(from)].count).offset", from)
        case .copy(let from, let a, let b), .slice(let from, let a, let b):
          writer.line("note(\"\\(Array(data[\(from)][\(writer.range(from, a, b))]))\")")
        case .iterate(let from): writer.line("note(\"\\(Array(data[\(from)]))\")")
        case .byte(let from, let at): writer.show("data[\(from)][\(at) % data[\(from)].count]", from)
        }
      }
    }
  }

  private func range(_ register: Int, _ a: Int, _ b: Int) -> String {
    let count = "(data[\(register)].count + 1)"
    return "min(\(a) % \(count), \(b) % \(count))..<max(\(a) % \(count), \(b) % \(count))"
  }

  /// Shows a value that exists only if the register has bytes.
  private mutating func show(_ value: String, _ register: Int) {
    line("if data[\(register)].count > 0 { note(\"\\(\(value))\") }")
  }
}
