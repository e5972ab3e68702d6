// An ordinary program: Foundation's queues, run loop, timers and child processes, actors and tasks, and
// Concourse's own queues, all in one process. Each step prints its result for the test.

import Foundation

import class Concourse.DispatchQueue
import class Concourse.DispatchSemaphore

/// The steps' shared state, with a lock.
final class Tally: @unchecked Sendable {  // SAFETY: `count` is GUARDED BY `lock`.
  private let lock = NSLock()
  private var count = 0

  func add(_ number: Int) { lock.withLock { count += number } }
  var total: Int { lock.withLock { count } }
}

actor Counter {
  private var count = 0
  func add() -> Int {
    count += 1
    return count
  }
}

/// The file in which the dynamic loader finds a C function.
func image(defining name: String) throws -> String {
  guard let found = dlsym(nil, name) else { return "nowhere" }
  let address = UInt(bitPattern: found)
  for line in try String(contentsOfFile: "/proc/self/maps", encoding: .utf8).split(separator: "\n") {
    let parts = line.split(separator: " ")
    let ends = parts[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
    guard ends.count == 2, (ends[0]..<ends[1]).contains(address) else { continue }
    return URL(fileURLWithPath: String(parts.last!)).lastPathComponent
  }
  return "nowhere"
}

func report(_ step: String, _ result: some CustomStringConvertible) { print("\(step): \(result)") }

func operations() {
  let tally = Tally()
  let queue = OperationQueue()
  queue.maxConcurrentOperationCount = 4
  for number in 0..<1000 { queue.addOperation { tally.add(number) } }
  queue.waitUntilAllOperationsAreFinished()
  report("operations", tally.total)
}

func childProcess() throws {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/bin/sh")
  process.arguments = ["-c", "exit 7"]
  try process.run()
  process.waitUntilExit()
  report("child", process.terminationStatus)
}

/// The signals that a child blocks.
func signalsOfChild() throws -> String {
  let process = Process()
  let output = Pipe()
  process.executableURL = URL(fileURLWithPath: "/bin/grep")
  process.arguments = ["SigBlk", "/proc/self/status"]
  process.standardOutput = output
  try process.run()
  let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  process.waitUntilExit()
  return text
}

/// A child that an item starts blocks what one of the main thread does, not what a worker does.
func childrenOfItems() async throws {
  let expected = try signalsOfChild()
  for queue in [DispatchQueue.global(qos: .userInitiated), .global(), .global(qos: .background)] {
    let found = try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result { try signalsOfChild() }) }
    }
    report("child of \(queue.label)", found == expected && !found.isEmpty)
  }
}

func nativeQueues() {
  let queue = DispatchQueue(label: "native")
  let tally = Tally()
  for number in 1...100 { queue.async { tally.add(number) } }
  queue.sync {}
  report("native queue", tally.total)
}

func tasks() async {
  let sum = await withTaskGroup(of: Int.self) { group in
    for number in 0..<1000 { group.addTask { number } }
    return await group.reduce(0, +)
  }
  report("task group", sum)
  let counter = Counter()
  for _ in 1..<100 { _ = await counter.add() }
  report("actor", await counter.add())
}

func sleeping() async throws {
  let clock = ContinuousClock()
  let start = clock.now
  try await Task.sleep(for: .milliseconds(20))
  report("sleep", clock.now - start >= .milliseconds(20))
  let sleeper = Task { try await Task.sleep(for: .seconds(3600)) }
  sleeper.cancel()
  do {
    try await sleeper.value
    report("cancelled sleep", "slept on")
  } catch is CancellationError {
    report("cancelled sleep", "ended")
  }
}

@MainActor
func runLoop() {
  report("main actor on main thread", Thread.isMainThread)
  var ticks = 0
  let timer = Timer(timeInterval: 0.01, repeats: true) { _ in
    MainActor.assumeIsolated { ticks += 1 }
  }
  RunLoop.main.add(timer, forMode: .default)
  var reachedMain = false
  // Both main queues are one.
  DispatchQueue.main.async { MainActor.assumeIsolated { reachedMain = Thread.isMainThread } }
  let end = Date(timeIntervalSinceNow: 30)
  while (ticks < 3 || !reachedMain) && Date() < end {
    _ = RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.1))
  }
  timer.invalidate()
  report("timer ticks", ticks >= 3)
  report("main queue in run loop", reachedMain)
}

func semaphores() async {
  // One of our semaphores, signalled by a thread of Foundation.
  let done = DispatchSemaphore(value: 0)
  Thread.detachNewThread { done.signal() }
  await withCheckedContinuation { continuation in
    DispatchQueue.global().async {
      done.wait()
      continuation.resume()
    }
  }
  report("semaphore", "signalled")
}

report("dispatch_async_f", try image(defining: "dispatch_async_f"))
report("dispatch_io_create", try image(defining: "dispatch_io_create"))
operations()
try childProcess()
try await childrenOfItems()
nativeQueues()
await tasks()
try await sleeping()
runLoop()
await semaphores()
report("end", "reached")
