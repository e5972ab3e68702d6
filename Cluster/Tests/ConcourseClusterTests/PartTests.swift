import Glibc
import Testing

@testable import ConcourseCluster

/// The parts without an engine.
@Suite struct PartTests {
  @Test func labelsOfAllKindsBecomeDifferentNames() {
    let labels = [
      "photos", "photos.small", "photos small", "ph=6Ftos", "photos=failed", "été", "", "*", ">", "a/b\r\n",
    ]
    var names: Set<String> = []
    for label in labels {
      let queue = NATSNames(label: label)
      #expect(NATSNames.decoded(NATSNames.encoded(label)) == label)
      for name in [queue.stream, queue.failedStream, queue.idsStream, queue.laterStream, queue.resultsStream]
      {
        #expect(!name.contains { ".*>/\\ \t\r\n".contains($0) })
        names.insert(name)
      }
      names.insert(queue.subject)
      names.insert(queue.failedSubject)
      names.insert(queue.idsSubject)
      names.insert(queue.laterSubject)
      names.insert(queue.hintSubject)
      names.insert(queue.turnSubject)
      names.insert(queue.startsSubject)
      names.insert(queue.resultsSubject)
    }
    #expect(names.count == 13 * labels.count)
    #expect(NATSNames(label: "photos").stream == "concourse_photos")
  }

  @Test func delaysDoubleUpToTheLongest() {
    var options = ClusterQueueOptions()
    options.longestRetryDelay = .seconds(5)
    #expect((1...6).map { options.delay(afterAttempt: $0) } == [1, 2, 4, 5, 5, 5].map { .seconds($0) })
    #expect(options.delay(afterAttempt: .max) == .seconds(5))
    options.retryDelay = .zero
    #expect(options.delay(afterAttempt: 1_000) == .zero)
  }

  @Test func idsAreForgottenInTime() throws {
    var options = ClusterQueueOptions()
    options.idsAreKept = .seconds(10)
    var state = EmbeddedState(QueueSettings(label: "ids", attributes: [], options: options))
    let start = ContinuousClock.now
    for second in 0..<100 {
      let now = start + .seconds(second)
      #expect(try state.store(NewItem(bytes: [], id: "\(second)"), at: now).0 == .stored)
      #expect(try state.store(NewItem(bytes: [], id: "\(max(second - 9, 0))"), at: now).0 == .duplicate)
      if second >= 10 {
        #expect(try state.store(NewItem(bytes: [], id: "\(second - 10)"), at: now).0 == .stored)
      }
      // That one is kept from here on.
      if second >= 20 {
        #expect(try state.store(NewItem(bytes: [], id: "\(second - 19)"), at: now).0 == .duplicate)
      }
    }
  }

  @Test func workersGetItemsInTurn() throws {
    var state = EmbeddedState(
      QueueSettings(label: "turns", attributes: .concurrent, options: ClusterQueueOptions()))
    let workers = try (1...3).map { _ in try state.addWorker { _ in } }
    for _ in 1...6 { _ = try state.store(NewItem(bytes: [], id: nil), at: .now) }
    #expect(state.next() == nil)
    for worker in workers { state.allow(1, for: worker) }
    #expect(state.removeWorker(workers[1]) {})
    #expect(state.next()?.item.number == 1)
    let second = try #require(state.next()?.item)
    #expect(second.number == 2)
    #expect(state.next() == nil)
    #expect(state.giveBack(second, at: .now).isEmpty)
    state.allow(2, for: workers[2])
    let again = try #require(state.next()?.item)
    #expect((again.number, again.attempt) == (2, 2))
    #expect(state.next()?.item.number == 3)
  }

  @Test func whatMayBeStoredIsNotRefused() {
    let refusal = NATSRefusal(code: 400, err_code: 10077, text: "disk is full")
    #expect(!refusal.isPassing)
    // An administrator allows no more.
    for (code, text) in [(10077, "maximum bytes exceeded"), (10002, "resource limits exceeded for account")] {
      #expect(!NATSRefusal(code: 503, err_code: code, text: text).isPassing)
    }
    #expect(NATSRefusal(code: 503, err_code: 10077, text: "store is closed").isPassing)
    // Two processes that create a stream at the same time.
    #expect(NATSRefusal(code: 404, err_code: 10059, text: "stream not found").isPassing)
    #expect(!NATSRefusal(code: 404, err_code: NATSRefusal.noMessage, text: "no message found").isPassing)
    func outcome(_ tries: [any Error], _ last: any Error) -> ClusterError? {
      var submission = NATSSubmission(queue: "photos", id: "1", bytes: 7)
      for error in tries { submission.failed(with: error) }
      submission.failed(with: last)
      return submission.outcome(of: last, largest: 5) as? ClusterError
    }
    #expect(outcome([NATSFailure.noResponders, NATSFailure.notConnected, NATSFailure.late], refusal) == nil)
    #expect(outcome([], NATSFailure.tooLarge) == .tooLarge(queue: "photos", bytes: 7, limit: 5))
    #expect(
      outcome([NATSFailure.timeout(.seconds(5))], refusal)
        == .notAcknowledged(queue: "photos", id: "1", reason: "disk is full (10077)"))
    #expect(
      outcome([], NATSFailure.timeout(.seconds(5)))
        == .notAcknowledged(queue: "photos", id: "1", reason: "no answer within 5.0 seconds"))
    #expect(outcome([], NATSFailure.noResponders) == nil)
  }

  @Test func itemsAreAsOldAsTheLastLook() {
    let start = ContinuousClock.now
    var pulse = NATSPulse(patience: .seconds(30), at: start)
    #expect(pulse.interval == .seconds(1))
    #expect(NATSPulse(patience: .seconds(2), at: start).interval == .milliseconds(500))
    #expect(pulse.look(at: start + .seconds(2)) == nil)
    #expect(pulse.earliest(at: start + .seconds(3)) == start + .seconds(3))
    // The process was stopped.
    #expect(pulse.look(at: start + .seconds(5)) == "pulse-1")
    #expect(pulse.earliest(at: start + .seconds(5)) == start + .seconds(2))
    #expect(pulse.look(at: start + .seconds(6)) == "pulse-1")
    // And once more, before its message has come back.
    #expect(pulse.look(at: start + .seconds(9)) == "pulse-2")
    pulse.hasReturned("pulse-1")
    #expect(pulse.earliest(at: start + .seconds(9)) == start + .seconds(2))
    pulse.hasReturned("pulse-2")
    #expect(pulse.earliest(at: start + .seconds(9)) == start + .seconds(9))
    // It expected nothing meanwhile.
    pulse.begin(at: start + .seconds(60))
    #expect(pulse.look(at: start + .seconds(61)) == nil)
  }

  @Test func answersAreWhatWasAskedFor() throws {
    for (subject, filter) in [("a.b", "a.b"), ("a.b", "a.*"), ("a.b.c", "a.>"), ("a.b.c", "*.b.*")] {
      #expect(NATSNames.matches(subject, filter))
    }
    for (subject, filter) in [("a.b", "a"), ("a", "a.b"), ("a", "a.>"), ("a.b.c", "a.*"), ("ab", "a*")] {
      #expect(!NATSNames.matches(subject, filter))
    }
    let message = NATSStored.Message(seq: 5, subject: "a.b")
    #expect(NATSGet(seq: 5).isAnswered(by: message))
    #expect(!NATSGet(seq: 4).isAnswered(by: message))
    #expect(NATSGet(seq: 4, next_by_subj: "a.*").isAnswered(by: message))
    #expect(!NATSGet(seq: 6, next_by_subj: "a.*").isAnswered(by: message))
    #expect(!NATSGet(seq: 4, next_by_subj: "b.*").isAnswered(by: message))
    #expect(NATSGet(last_by_subj: "a.b").isAnswered(by: message))
    #expect(!NATSGet(last_by_subj: "a.c").isAnswered(by: message))
  }

  @Test func leaderIsConfirmedByAMajority() throws {
    func isConfirmed(_ silences: [Duration]?) throws -> Bool {
      let replicas = silences?.map { "{\"name\": \"b\", \"active\": \($0.inNanoseconds)}" }.joined(
        separator: ",")
      let cluster = replicas.map { ", \"cluster\": {\"leader\": \"a\", \"replicas\": [\($0)]}" } ?? ""
      let place = "{\"stream_seq\": 1}"
      let text =
        "{\"num_pending\": 0, \"num_ack_pending\": 0, \"delivered\": \(place), \"ack_floor\": \(place)\(cluster)}"
      return try decoded(Array(text.utf8), as: NATSConsumerInfo.self).isConfirmed
    }
    let (near, far) = (NATSCluster.longestSilence, NATSCluster.longestSilence + .nanoseconds(1))
    #expect(try isConfirmed(nil))
    #expect(try isConfirmed([]))
    #expect(try isConfirmed([near, far]))
    #expect(try !isConfirmed([far, far]))
    #expect(try isConfirmed([near, far, near, far]))
    #expect(try !isConfirmed([near, far, far, far]))
  }

  @Test func requestsForItemsAreShortUntilOneIsAnswered() {
    var requests = NATSRequests()
    let start = ContinuousClock.now
    let first = requests.add(4, at: start)
    #expect(first.patience == .milliseconds(500))
    requests.lose(at: start + .milliseconds(1_499))
    #expect(requests.missing == 4)
    requests.lose(at: start + .milliseconds(1_500))
    #expect(requests.missing == 0)
    let second = requests.add(4, at: start + .seconds(2))
    #expect(second.patience == .milliseconds(500))
    // The status of the lost request comes late. It does not end the repetition.
    requests.end(first.name, missing: 4, isWell: false)
    #expect(requests.missing == 4)
    requests.end(second.name, missing: nil, isWell: true)
    #expect(requests.missing == 0)
    let third = requests.add(4, at: start + .seconds(3))
    #expect(third.patience == .seconds(2))
    requests.itemHasCome()
    #expect(requests.missing == 3)
    requests.lose(at: start + .milliseconds(5_999))
    #expect(requests.missing == 3)
    // Again after a loss, and after trouble.
    requests.lose(at: start + .seconds(6))
    #expect(requests.missing == 0)
    let fourth = requests.add(1, at: start + .seconds(6))
    #expect(fourth.patience == .milliseconds(500))
    requests.itemHasCome()
    let fifth = requests.add(1, at: start + .seconds(7))
    #expect(fifth.patience == .seconds(2))
    requests.end(fifth.name, missing: nil, isWell: false)
    #expect(requests.add(1, at: start + .seconds(8)).patience == .milliseconds(500))
  }

  @Test func programsSeeNoInternalErrors() {
    let errors: [any Error] = [
      NATSFailure.timeout(.seconds(1)), NATSRefusal(code: 404, err_code: nil, text: nil), Failed("JSON"),
    ]
    let seen = errors.map { NATSQueue.visible($0, queue: "photos") as? ClusterError }
    #expect(
      seen
        == ["no answer within 1.0 seconds", "error 404 (404)", "JSON"].map {
          .engine(queue: "photos", reason: $0)
        })
    #expect(NATSQueue.visible(NATSFailure.closed, queue: "photos") as? ClusterError == .closed)
    #expect(NATSQueue.visible(CancellationError(), queue: "photos") is CancellationError)
  }

  @Test func reasonsAreCutByBytes() {
    #expect("eye".cut(to: 3) == "eye")
    #expect("eyes".cut(to: 3) == "eye")
    #expect("éé".cut(to: 3) == "é")
    #expect(String(repeating: "e\u{301}", count: 1).cut(to: 2) == "e")
    // One character of many bytes.
    let family = "a" + String(repeating: "\u{301}", count: 5_000)
    #expect(family.cut(to: 1_000).utf8.count == 999)
  }

  @Test func durationsOfAnyLengthAreTaken() {
    let longest = Duration(secondsComponent: .max, attosecondsComponent: 999_999_999_999_999_999)
    for duration in [longest, .nanoseconds(Int64.max), .seconds(9_223_372_036) + .milliseconds(999)] {
      #expect(duration.inNanoseconds == .max)
      #expect(duration.asInterval == .nanoseconds(.max))
      #expect(duration.forServers == 3_153_600_000_000_000_000)
    }
    #expect((Duration.zero - longest).inNanoseconds == .min)
    #expect(Duration.milliseconds(1_500).inNanoseconds == 1_500_000_000)
    var options = ClusterQueueOptions()
    options.retryDelay = longest
    options.longestRetryDelay = longest
    #expect(options.delay(afterAttempt: 5) == longest)
  }

  /// A worker that is removed has ended when the delivery on its way has arrived.
  @Test func removedWorkerGetsWhatIsOnItsWay() throws {
    var state = EmbeddedState(QueueSettings(label: "turns", attributes: [], options: ClusterQueueOptions()))
    let worker = try state.addWorker { _ in }
    _ = try state.store(NewItem(bytes: [], id: nil), at: .now)
    state.allow(1, for: worker)
    #expect(state.next() != nil)
    #expect(!state.removeWorker(worker) {})
    #expect(state.received(worker) != nil)
    #expect(state.removeWorker(worker) {})
  }

  @Test func misuseOfLabelsSaysWhatItIs() async {
    func text(_ result: ExitTest.Result?) -> String {
      String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }
    let empty = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = ClusterQueue<Int>(label: "", on: .embedded())
    }
    #expect(text(empty).contains("a cluster queue needs a label, not an empty one (queue \"\")"))
    let long = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = ClusterQueue<Int>(label: String(repeating: "é", count: 33), on: .embedded())
      _ = ClusterQueue<Int>(label: String(repeating: "é", count: 34), on: .embedded())
    }
    #expect(text(long).contains("of which any other byte counts as three, not 204 (queue \""))
  }

  @Test func misuseSaysWhatItIs() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      var options = ClusterQueueOptions()
      options.attempts = 0
      _ = ClusterQueue<Int>(label: "never", options: options, on: .embedded())
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(
      text.contains(
        "BUG IN CLIENT OF CLUSTER: a cluster queue needs at least one attempt, not 0 (queue \"never\")"))
  }
}
