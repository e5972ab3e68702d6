import CBench
import Glibc

extension Row {
  /// - Parameter trips: round trips in a pass, shared out over the connections.
  static func echo(connections: Int, trips: Int) -> Row {
    let plural = connections == 1 ? "connection" : "connections"
    return Row(
      "echo-\(connections)-\(plural)", .nanoseconds,
      "TCP echo server, a read source and a serial queue for each connection: wall time for a round trip"
    ) { scale in
      let trips = scale.count(trips)
      let passes = 3
      _ = bench_raise_descriptor_limit()
      let server = EchoServer()
      var nanoseconds = 0
      var bytes = 0
      // The clients are a program in C with a process of its own: they cost each runtime the same.
      let failure = bench_run_echo_load(
        server.port, Int32(connections), trips, Int32(passes), &nanoseconds, &bytes)
      verify(failure, equals: 0, "the load ran to its end")
      server.stop()
      // One more of each connection: it tells the load that it is accepted.
      verify(bytes, equals: (connections + (passes + 1) * trips) * 128, "bytes that came back")
      verify(server.bytes.value, equals: bytes, "bytes that the server echoed")
      verify(server.accepted.value, equals: connections, "connections accepted")
      return Measurement(
        value: Double(nanoseconds) / Double(trips), operations: trips, check: bytes)
    }
  }
}
