import ConcourseEvents
import Glibc

// One thread in each kind of wait, and one of each kind of event, for the tests of `concourse report`.

/// A thread of the program's own, with a name.
func startThread(_ name: String, _ body: @escaping () -> Void) {
  let box = Unmanaged.passRetained(Box(name, body))
  var thread = pthread_t()
  pthread_create(
    &thread, nil,
    { argument in
      let box = Unmanaged<Box>.fromOpaque(argument!).takeRetainedValue()
      ThreadName.set(box.name)
      box.body()
      return nil
    }, box.toOpaque())
}

enum ThreadName {
  static func set(_ name: String) {
    let file = open("/proc/thread-self/comm", O_WRONLY)
    write(file, name, name.utf8.count)
    close(file)
  }

  static var isOfPool: Bool {
    var name = [UInt8](repeating: 0, count: 16)
    let file = open("/proc/thread-self/comm", O_RDONLY)
    read(file, &name, name.count)
    close(file)
    return name.starts(with: "concourse".utf8)
  }
}

final class Box {
  let name: String
  let body: () -> Void
  init(_ name: String, _ body: @escaping () -> Void) { (self.name, self.body) = (name, body) }
}

if CommandLine.arguments.dropFirst().first == "busy" { Busy.run() }
if CommandLine.arguments.dropFirst().first == "nameless" { Nameless.run() }
if CommandLine.arguments.dropFirst().first == "hostile" { Hostile.run() }
if CommandLine.arguments.dropFirst().first == "healthy" { Hierarchy.run(isHeld: false) }
if CommandLine.arguments.dropFirst().first == "held" { Hierarchy.run(isHeld: true) }
if CommandLine.arguments.dropFirst().first == "workloop" { Hierarchy.runWorkloop(isHeld: false) }
if CommandLine.arguments.dropFirst().first == "held-workloop" { Hierarchy.runWorkloop(isHeld: true) }
if CommandLine.arguments.dropFirst().first == "pausing" { Healthy.pause() }
if CommandLine.arguments.dropFirst().first == "answering" { Healthy.answer() }
if CommandLine.arguments.dropFirst().first == "working" { Healthy.work() }
if CommandLine.arguments.dropFirst().first == "receiving" { Healthy.receive() }
if CommandLine.arguments.dropFirst().first == "tasks" { Tasks.run() }
if CommandLine.arguments.dropFirst().first == "suspended" { Suspended.run() }
if CommandLine.arguments.dropFirst().first == "ticking" { Suspended.runTicking() }
if CommandLine.arguments.dropFirst().first == "sleepers" {
  Sleepers.run(Int(CommandLine.arguments.last!) ?? 0)
}
if CommandLine.arguments.dropFirst().first == "many" { Many.run(Int(CommandLine.arguments.last!) ?? 0) }
if CommandLine.arguments.dropFirst().first == "ended-main" { EndedMain.run() }
if CommandLine.arguments.dropFirst().first == "ending-main" { EndedMain.runUntilSignal() }
if CommandLine.arguments.dropFirst().first == "admitted" { Hierarchy.runAdmitted() }
if CommandLine.arguments.dropFirst().first == "channels" { Channels.run() }
if CommandLine.arguments.dropFirst().first == "jobs" { Jobs.run() }
if CommandLine.arguments.dropFirst().first == "computing" { Computing.run() }
if CommandLine.arguments.dropFirst().first == "deadlock" { Deadlock.run(CommandLine.arguments.last!) }

// These live as long as the process, and the threads only wait on them.
let group = DispatchGroup()
let semaphore = DispatchSemaphore(value: 0)
nonisolated(unsafe) let item = DispatchWorkItem {}
let once = DispatchOnce()
nonisolated(unsafe) let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
nonisolated(unsafe) var pipeEnds: [Int32] = [0, 0]

pipe(&pipeEnds)
pthread_mutex_init(mutex, nil)
group.enter()

let held = DispatchQueue(label: "held")
let wide = DispatchQueue(label: "wide", qos: .utility, attributes: .concurrent, target: nil)
let nested = DispatchQueue(label: "nested", target: held)
let idle = DispatchQueue(label: "a label of more than fifteen bytes")
held.async { pause() }

startThread("in-group") { group.wait() }
startThread("in-semaphore") { semaphore.wait() }
startThread("in-time-out") { _ = semaphore.wait(timeout: .now() + 100_000) }
startThread("in-item") { item.wait() }
let onceBegan = DispatchSemaphore(value: 0)
startThread("in-once") {
  once.perform {
    onceBegan.signal()
    pause()
  }
}
startThread("behind-once") {
  onceBegan.wait()
  once.perform {}
}
let helperBegan = DispatchSemaphore(value: 0)
startThread("in-loop") {
  DispatchQueue.concurrentPerform(iterations: 2) { _ in
    // Only a helper of the pool stays.
    if ThreadName.isOfPool {
      helperBegan.signal()
      pause()
    } else {
      helperBegan.wait()
    }
  }
}
startThread("in-read") {
  var byte: UInt8 = 0
  read(pipeEnds[0], &byte, 1)
}
startThread("has-mutex") {
  pthread_mutex_lock(mutex)
  startThread("in-mutex") { pthread_mutex_lock(mutex) }
  pause()
}
startThread("in-sync") { held.sync {} }
startThread("in-nested-sync") { nested.sync {} }
startThread("in-main-sync") { DispatchQueue.main.sync {} }

let timer = DispatchSource.makeTimerSource(queue: idle)
timer.setEventHandler {}
timer.schedule(deadline: .now() + 5000)
timer.activate()
let reader = DispatchSource.makeReadSource(fileDescriptor: pipeEnds[0], queue: idle)
reader.setEventHandler {}
reader.activate()
idle.asyncAfter(deadline: .now() + 7000) {}
var channelEnds: [Int32] = [0, 0]
pipe(&channelEnds)
let channel = DispatchIO(type: .stream, fileDescriptor: channelEnds[0], queue: idle) { _ in }
channel.read(offset: 0, length: 10, queue: idle) { _, _, _ in }

// The main queue is not served.
print("ready")
fflush(nil)
while true { pause() }
