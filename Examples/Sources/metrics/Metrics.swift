import ExampleSupport
import Glibc
import Synchronization

/// The program: some work on a few queues, and an endpoint that tells how it goes.
@main
struct Metrics {
  private static let program = Program(name: "metrics", help: helpText)

  static func main() {
    let options = program.options(Options.init)
    signal(SIGPIPE, SIG_IGN)
    let totals = Mutex(Totals())
    let statistics = DispatchQueue(label: "metrics.statistics")
    let observation = Inspection.observe(every: .milliseconds(options.interval), on: statistics) { interval in
      totals.withLock { $0.add(interval) }
    }
    guard observation.isPossible else {
      program.complain("there are no statistics in this process")
      exit(1)
    }
    let endpoint: Endpoint
    do {
      endpoint = try Endpoint(port: options.port) { format in totals.withLock { $0.text(format) } }
    } catch {
      program.complain(error.message)
      exit(1)
    }
    let work = Work()
    let begin = { @Sendable in
      _ = writeAll(Bytes("metrics: http://\(endpoint.address)/metrics\n".utf8), to: STDOUT_FILENO)
    }
    Signals.handle([SIGTERM, SIGINT], on: .main, whenReady: begin) { _ in
      // They live until here.
      _ = (endpoint, observation, work)
      exit(0)
    }
    dispatchMain()
  }
}

/// What the program would be for: requests that are decoded at once, and stored one after the other.
// SAFETY: constants; a source and queues may be used from any thread.
private final class Work: @unchecked Sendable {
  private let arrivals = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "work.arrivals"))

  init() {
    // A label may be any text.
    let decoding = DispatchQueue(label: "work.decoding \"JSON\"", attributes: .concurrent)
    // Two queues of one label are one series.
    let stores = (0..<2).map { _ in DispatchQueue(label: "work.store") }
    let spins = DispatchQueue(label: "C:\\work\nsecond line")
    arrivals.schedule(deadline: .now(), repeating: .milliseconds(5))
    arrivals.setEventHandler {
      for store in stores {
        decoding.async { store.async { busy(microseconds: 50) } }
      }
      spins.async {}
    }
    arrivals.activate()
  }
}

private func busy(microseconds: UInt64) {
  let end = DispatchTime.now().uptimeNanoseconds + microseconds * 1000
  while DispatchTime.now().uptimeNanoseconds < end {}
}

struct Options: Sendable, Equatable {
  /// 0 lets the kernel choose.
  var port: UInt16 = 0
  /// Milliseconds.
  var interval = 1000

  init() {}

  init(_ arguments: inout Arguments) throws(UsageError) {
    while let argument = try arguments.next() {
      switch argument {
      case .name(let name): throw UsageError("no names are expected: \(name.text)")
      case .option("-p"), .option("--port"): port = UInt16(try arguments.number(in: 0...65_535))
      case .option("--interval"): interval = try arguments.number(in: 1...3_600_000)
      case .option: throw arguments.unknownOption()
      }
    }
  }
}

private let helpText = """
  usage: metrics [options]

  Does some work on dispatch queues, and tells how it goes in the OpenMetrics text format, on this machine only. The
  first line of its output is the address.

    -p, --port N       the port; 0, the default, lets the kernel choose one
        --interval N   milliseconds between two looks at the queues (1000)
    -h, --help         print this text

  SIGTERM or SIGINT (Ctrl-C) ends it.

  """
