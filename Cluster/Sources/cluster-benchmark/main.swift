// Measures a queue of a cluster, and a plain use of the same client library. `Cluster/Scripts/benchmark` starts the servers,
// runs both in turn, and compares them.
//
// usage: cluster-benchmark plain|ours COUNT SERVER...    prints a line for each figure: its name and its value
//
// The same for both: COUNT items of some 30 bytes are submitted, up to 64 of them in flight, on three servers; then they
// are run, up to 64 of them at a time, by a handler that does nothing. Latency is the time from the call that submits an
// item to the start of its handler, while items are submitted at half of the rate at which they can be submitted and run
// at the same time.
import Glibc

struct Item: Codable, Sendable {
  var number: Int
  /// When it was submitted.
  var time: UInt64
}

/// What both sides do.
protocol Side: Sendable {
  /// Submits items one after the other, up to `inFlight` of them at a time, and returns when all are stored.
  func submit(_ count: Int) async throws
  /// Submits one item each `interval` nanoseconds.
  func submit(_ count: Int, every interval: UInt64) async throws
  /// Runs as many items. Returns when the last one has run, with how many nanoseconds passed from the submission of each to
  /// its start.
  func run(_ count: Int) async throws -> [UInt64]
  /// Waits until nothing of a run is left.
  func rest() async
}

let inFlight = 64

/// Nanoseconds of the monotonic clock.
func now() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Tells how many items a second were done since it was made, and how many microseconds of processor time each took in
/// this process. The latter depends less on what else the machine does.
struct Phase {
  private let start = now()
  private let used = Self.processorTime()

  func rate(_ count: Int) -> Double { Double(count) * 1e9 / Double(now() - start) }

  func tell(_ name: String, _ count: Int) {
    let (rate, time) = (rate(count), Self.processorTime() - used)
    print(name, Int(rate))
    print("processor-\(name)", Int(time) / count / 1_000)
  }

  private static func processorTime() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

func measure(_ side: some Side, _ count: Int) async throws {
  // Leaders are elected, and connections made.
  try await side.submit(inFlight)
  _ = try await side.run(inFlight)
  await side.rest()

  var phase = Phase()
  try await side.submit(count)
  phase.tell("submit", count)
  phase = Phase()
  _ = try await side.run(count)
  phase.tell("run", count)
  await side.rest()
  phase = Phase()
  async let whole = side.run(count)
  try await side.submit(count)
  _ = try await whole
  let both = phase.rate(count)
  phase.tell("both", count)
  await side.rest()

  let interval = UInt64(2e9 / both)
  let calm = min(count, Int(10e9) / Int(interval))
  async let delays = side.run(calm)
  try await side.submit(calm, every: interval)
  let sorted = try await delays.sorted()
  for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
    print(name, sorted[Int(Double(sorted.count - 1) * share)] / 1_000)
  }
}

/// Sleeps until the times at which items are due.
func pace(_ count: Int, every interval: UInt64, _ submit: (Int) async throws -> Void) async throws {
  let start = now()
  for number in 0..<count {
    let due = start + UInt64(number) * interval
    // The task may come late; those that are due by then are submitted at once.
    let now = now()
    if due > now + 500_000 { try await Task.sleep(for: .nanoseconds(due - now)) }
    try await submit(number)
  }
}

let arguments = CommandLine.arguments
guard arguments.count > 3, let count = Int(arguments[2]) else {
  print("usage: cluster-benchmark plain|ours COUNT SERVER...")
  exit(2)
}
let servers = Array(arguments[3...])
if arguments[1] == "plain" {
  try await measure(try Plain(servers), count)
} else {
  try await measure(try await Ours(servers), count)
}
// The connections end with the process.
exit(0)
