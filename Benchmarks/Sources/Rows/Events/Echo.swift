import CBench
import Glibc

extension Row {
  /// - Parameter trips: round trips in a pass, shared out over the connections.
  static func echo(connections: Int, trips: Int) -> Row {
    Row(
      "echo-\(connections)-\(connections == 1 ? "connection" : "connections")", count: trips,
      "TCP echo server, a read source and a serial queue for each connection: wall time for a round trip"
    ) { trips in
      let passes = 3
      bench_raise_descriptor_limit()
      let server = EchoServer()
      var nanoseconds = 0
      var bytes = 0
      // The clients are a program in C with a process of its own: they cost each runtime the same.
      let failure = bench_run_echo_load(
        server.port, Int32(connections), trips, Int32(passes), &nanoseconds, &bytes)
      verify(failure, equals: 0, "the load's status")
      server.stop()
      // Each connection makes one more round trip, by which the load knows that it is accepted.
      verify(bytes, equals: (connections + (passes + 1) * trips) * 128, "bytes that came back")
      verify(server.bytes.value, equals: bytes, "bytes that the server echoed")
      verify(server.accepted.value, equals: connections, "connections accepted")
      return Measurement(value: Double(nanoseconds) / Double(trips), operations: trips, check: bytes)
    }
  }
}
