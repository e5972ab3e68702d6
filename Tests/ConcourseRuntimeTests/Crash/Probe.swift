import Testing
import Glibc
@testable import ConcourseRuntime
func say(_ s: String) { var s = s + "\n"; s.withUTF8 { _ = write(2, $0.baseAddress, $0.count) } }
@Suite struct Probe {
  @Test func a() async {
    let r = await #expect(processExitsWith: .exitCode(3), observing: [\.standardErrorContent]) { @MainActor in
      say("tid \(CurrentThread.id) pid \(getpid())")
      exit(3)
    }
    print(String(decoding: r!.standardErrorContent, as: UTF8.self))
    let r2 = await #expect(processExitsWith: .exitCode(3), observing: [\.standardErrorContent]) {
      say("tid \(CurrentThread.id) pid \(getpid())")
      system("for t in /proc/\(getpid())/task/*; do echo $t; cat $t/comm $t/syscall $t/wchan; grep State $t/status; done >&2")
      exit(3)
    }
    print(String(decoding: r2!.standardErrorContent, as: UTF8.self))
    await #expect(processExitsWith: .success) {
      #expect(1 == 2, "in child")
    }
    await #expect(processExitsWith: .exitCode(0)) {
      #expect(1 == 2, "in child exit")
      exit(0)
    }
  }
}
