import Concourse

/// Readings of a sensor as a stream. When the sensor is switched off, the producer ends without finishing it.
enum Sensors {
  static func start() {
    let (readings, continuation) = AsyncStream<Int>.makeStream()
    Task(name: "sensor") {
      for number in 1...3 { continuation.yield(number) }
      // The bug: no `continuation.finish()`.
    }
    Task(name: "display") {
      // Somebody could still yield, as far as the stream knows.
      defer { _ = continuation }
      for await reading in readings { print(reading) }
      print("switched off")
    }
  }
}
