import ExampleSupport
import Glibc
import Testing

@Suite struct SourcesTests {
  @Test func signalsArriveAlthoughNothingRefersToTheSources() {
    let ready = DispatchSemaphore(value: 0)
    let arrived = DispatchSemaphore(value: 0)
    let begin = { @Sendable in _ = ready.signal() }
    Signals.handle([SIGUSR2], on: DispatchQueue(label: "test.signals"), whenReady: begin) { _ in
      arrived.signal()
    }
    #expect(ready.wait(timeout: .now() + .seconds(120)) == .success)
    kill(getpid(), SIGUSR2)
    #expect(arrived.wait(timeout: .now() + .seconds(120)) == .success)
  }
}
