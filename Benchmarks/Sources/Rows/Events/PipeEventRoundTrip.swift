import Glibc

extension Row {
  static let pipeEventRoundTrip = Row(
    "pipe-event-round-trip", .nanoseconds,
    "write to a pipe, whose read source's handler reads and signals a semaphore: the round trip"
  ) { scale in
    let count = scale.count(20_000)
    let court = PipeCourt()
    let value = nanosecondsPerOperation(count) {
      court.trips.value = 0
      let time = elapsed {
        for _ in 0..<count {
          court.serve()
          court.answer.wait()
        }
      }
      verify(court.trips.value, equals: count, "events handled")
      return time
    }
    court.close()
    return Measurement(value: value, operations: count, check: court.trips.value)
  }
}

private final class PipeCourt {
  let answer = DispatchSemaphore(value: 0)
  /// Written on the source's queue while the main thread waits for the answer.
  let trips = Cell()
  private let pipe = Pipe()
  private let source: any DispatchSourceRead

  init() {
    source = DispatchSource.makeReadSource(
      fileDescriptor: pipe.reading, queue: DispatchQueue(label: "pipe"))
    source.setEventHandler { [pipe, answer, trips] in
      pipe.receive()
      trips.add(1)
      answer.signal()
    }
    source.setCancelHandler { [pipe, answer] in
      Glibc.close(pipe.reading)
      answer.signal()
    }
    source.resume()
  }

  func serve() { pipe.send() }

  func close() {
    source.cancel()
    answer.wait()
    Glibc.close(pipe.writing)
  }
}
