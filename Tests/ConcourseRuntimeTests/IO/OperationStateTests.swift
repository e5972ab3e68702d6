import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

@Suite("The state of an operation")
struct OperationStateTests {
  /// The owner's actions, as text.
  private func describe(_ actions: OperationState.Actions) -> String {
    var words: [String] = []
    if actions.calls > 0 { words.append("call \(actions.calls)") }
    if actions.hasEnded { words.append("end") }
    if let (kind, delay) = actions.timer { words.append("\(kind) \(delay)") }
    switch actions.next {
    case .wait: break
    case .transfer(let transfer): words.append("transfer \(transfer.count) at \(transfer.offset)")
    case .arm: words.append("arm")
    case .step: words.append("step")
    }
    return words.joined(separator: ", ")
  }

  private func reading(
    _ length: Int, low: Int = 1, _ type: DispatchIO.StreamType = .stream, base: Int = 0, offset: Int = 0,
    pacing: Channel.Pacing? = nil
  ) -> OperationState {
    let channel = Channel(type, base: base, .global(), nil)
    channel.pacing = pacing
    var marks = WaterMarks()
    marks.setLow(low)
    return OperationState(.read(length, .pieces, marks), for: channel, offset: offset)
  }

  private func bytes(_ count: Int) -> Transfer.Outcome {
    .read(bytesData([UInt8](repeating: 0, count: count)))
  }

  @Test("a step makes a bounded number of transfers, and the ring's completion submits a step")
  func turns() {
    var state = reading(1000, low: 1000)
    #expect(describe(state.resume()) == "step")
    #expect(describe(state.beginStep()) == "transfer 1000 at -1")
    for number in 1..<OperationState.transfersPerStep {
      #expect(describe(state.didTransfer(bytes(1), .file, inStep: true)) == "transfer \(1000 - number) at -1")
    }
    #expect(describe(state.didTransfer(bytes(1), .file, inStep: true)) == "step")
    #expect(describe(state.beginStep()).hasPrefix("transfer"))
    #expect(describe(state.didTransfer(bytes(1), .file, inStep: false)) == "step")
  }

  @Test("offsets that no file has", arguments: [(0, -1), (5, .max), (.max, 0)])
  func places(_ base: Int, _ offset: Int) {
    var state = reading(10, low: 10, .random, base: base, offset: offset)
    _ = state.resume()
    if base == .max {
      #expect(describe(state.beginStep()) == "transfer 10 at \(Int.max)")
      #expect(describe(state.didTransfer(bytes(1), .file, inStep: true)) == "call 2, end")
    } else {
      #expect(describe(state.beginStep()) == "call 1, end")
    }
  }

  @Test("a wake-up while the watch is being armed is not lost")
  func arming() {
    var state = reading(10)
    _ = state.resume()
    _ = state.beginStep()
    #expect(describe(state.didTransfer(.wouldBlock, .readiness, inStep: true)) == "arm")
    #expect(describe(state.wake()) == "")
    #expect(describe(state.didArm(0)) == "step")
    _ = state.beginStep()
    #expect(describe(state.didTransfer(.wouldBlock, .readiness, inStep: true)) == "arm")
    #expect(describe(state.didArm(0)) == "")
    #expect(describe(state.wake()) == "step")
    #expect(describe(state.wake()) == "")
    _ = state.beginStep()
    #expect(describe(state.didTransfer(.wouldBlock, .readiness, inStep: true)) == "arm")
    #expect(describe(state.stop()) == "")
    #expect(describe(state.didArm(0)) == "step")
    #expect(describe(state.beginStep()) == "call 1, end")
    #expect(describe(state.wake()) == "")
  }

  @Test("attempts without progress: four with the watch, then the timer, with growing delays")
  func vainAttempts() {
    var state = reading(10)
    var words: [String] = []
    for _ in 0..<30 {
      _ = state.beginStep()
      words.append(describe(state.didTransfer(.wouldBlock, .readiness, inStep: true)))
      if words.last == "arm" { _ = state.didArm(0) }
      _ = state.wake()
    }
    #expect(words[..<5] == ["arm", "arm", "arm", "arm", "retry 2000000"])
    #expect(words.last == "retry 64000000")
    var file = reading(10)
    _ = file.beginStep()
    #expect(describe(file.didTransfer(.wouldBlock, .file, inStep: true)) == "retry 1000000")
    #expect(describe(file.timerIsDue(.retry)) == "step")
  }

  @Test("the next step follows a quick handler, runs beside a slow one, and never waits for ever")
  func following() {
    var state = reading(1000)
    _ = state.beginStep()
    let follows = state.didTransfer(bytes(1), .file, inStep: true)
    #expect(describe(follows) == "call 1, patience \(OperationState.patience)")
    _ = state.takeDelivery()
    #expect(describe(state.handlerDidReturn(after: 10)) == "step")
    _ = state.beginStep()
    #expect(describe(state.didTransfer(bytes(1), .file, inStep: true)) == "call 1")
    // The timer was set for the handler's first call.
    #expect(describe(state.timerIsDue(.patience)) == "patience \(OperationState.patience)")
    #expect(describe(state.timerIsDue(.patience)) == "step")
    _ = state.beginStep()
    #expect(describe(state.didTransfer(bytes(1), .file, inStep: true)) == "call 1, step")
    _ = state.takeDelivery()
    #expect(describe(state.handlerDidReturn(after: OperationState.quickHandler + 1)) == "")
  }

  @Test("a full outbox pauses the operation until the handler has returned")
  func throttling() {
    let half = OperationState.largestOutbox / 2
    var state = reading(.max)
    _ = state.beginStep()
    _ = state.didTransfer(bytes(half), .file, inStep: true)
    _ = state.timerIsDue(.patience)
    _ = state.beginStep()
    #expect(describe(state.didTransfer(bytes(half), .file, inStep: true)) == "call 1, step")
    #expect(describe(state.beginStep()) == "")
    #expect(state.takeDelivery().data?.count == half)
    #expect(describe(state.timerIsDue(.retry)) == "")
    #expect(describe(state.handlerDidReturn(after: 10)) == "step")
    #expect(describe(state.beginStep()).hasPrefix("transfer"))
  }

  @Test("many small deliveries pause the operation too", arguments: [true, false])
  func throttlingSmall(isWrite: Bool) {
    var marks = WaterMarks()
    marks.setHigh(1)
    let most = OperationState.largestOutbox / 100
    let progress: OperationProgress =
      isWrite
      ? .write(bytesData([UInt8](repeating: 0, count: most)), .pieces, marks) : .read(most, .pieces, marks)
    var state = OperationState(progress, for: Channel(.stream, .global(), nil), offset: 0)
    _ = state.beginStep()
    let piece = isWrite ? Transfer.Outcome.wrote(1) : bytes(1)
    var calls = 0
    while calls < most - 1 {
      #expect(state.didTransfer(piece, .file, inStep: true).calls == 1)
      calls += 1
      // The handler does not return.
      _ = state.timerIsDue(.patience)
      if describe(state.beginStep()).isEmpty { break }
    }
    #expect(calls < most / 2)
    _ = state.takeDelivery()
    #expect(describe(state.handlerDidReturn(after: 10)) == "step")
    #expect(describe(state.beginStep()).hasPrefix("transfer"))
  }

  @Test("stop ends a waiting operation; no call follows the last")
  func stopping() {
    var state = reading(1000)
    _ = state.beginStep()
    _ = state.didTransfer(bytes(1), .file, inStep: true)
    #expect(describe(state.stop()) == "call 1, end")
    #expect(state.isFinished)
    #expect(!state.takeDelivery().isLast)
    #expect(describe(state.handlerDidReturn(after: 10)) == "")
    #expect(!state.hasDeliveredAll)
    #expect(state.takeDelivery().error == ECANCELED)
    #expect(state.hasDeliveredAll)
    #expect(describe(state.timerIsDue(.patience)) == "")
  }

  @Test("S127 the interval timer is set with the first step, and again until the end")
  func intervals() {
    var state = reading(1000, low: 10, pacing: Channel.Pacing(interval: 77, isStrict: true))
    #expect(describe(state.beginStep()) == "interval 77, transfer 1000 at -1")
    #expect(describe(state.timerIsDue(.interval)) == "call 1, interval 77")
    // A slow handler gets no extra calls.
    #expect(describe(state.timerIsDue(.interval)) == "interval 77")
    #expect(describe(state.didTransfer(.endOfFile, .file, inStep: true)) == "call 1, end")
    #expect(describe(state.timerIsDue(.interval)) == "")
  }
}
