import Concourse
import Glibc

/// A server calls a slow service once for each request, in an item that blocks its thread. The pool adds threads up to
/// its limit. Then everything else in the process waits behind the requests.
enum Requests {
  static func start() {
    for number in 0..<100_000 {
      DispatchQueue.global().async { answer(request: number) }
    }
    DispatchQueue.global().async { print("this item takes no time, but it has to wait for a thread") }
  }

  private static func answer(request: Int) {
    // Stands for a call over the network: it takes between one and two seconds.
    usleep(UInt32.random(in: 1_000_000..<2_000_000))
  }
}
