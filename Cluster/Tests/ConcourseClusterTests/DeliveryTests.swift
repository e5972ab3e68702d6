import Glibc
import Synchronization
import Testing

@testable import ConcourseCluster

/// The place of a worker.
private struct Place: DeliveryPlace {
  var left: @Sendable () -> Void = {}
  var taken: @Sendable () async -> Void = {}
  func leave() { left() }
  func take() async { await taken() }
}

/// A delivery, with servers that say what the test wants.
@Suite struct DeliveryTests {
  /// What a delivery tells the servers, and what they answer: `nil` is no answer yet.
  private final class Servers: NATSDeliveryQueue {
    struct Told: Equatable {
      let attempt: String
      let text: String
    }

    /// Of the deliveries that come from here on.
    let patienceNow: Mutex<Duration>
    var patience: Duration { patienceNow.withLock { $0 } }
    let idsAreKept = Duration.seconds(3_600)
    var held: NATSHeldItems {
      let body = beforeHeld.withLock { body in
        defer { body = nil }
        return body
      }
      body?()
      return items
    }
    private let items = NATSHeldItems()
    /// What happens once, before the delivery looks at the items that are held.
    let beforeHeld = Mutex<(@Sendable () -> Void)?>(nil)
    let told = Log<Told>()
    /// Until when the texts may be sent.
    let ends = Log<ContinuousClock.Instant>()
    private let answers: Mutex<[Result<NATSMessage, any Error>?]>
    private let waiting = Log<NATSConnection.Done>()

    /// What `keep` throws.
    private let refusal: (any Error)?

    init(
      patience: Duration = .seconds(3_600), _ answers: [Result<NATSMessage, any Error>?] = [],
      refusal: (any Error)? = nil
    ) {
      self.refusal = refusal
      patienceNow = Mutex(patience)
      self.answers = Mutex(answers)
    }

    func tell(
      _ subject: String, _ text: String, before end: ContinuousClock.Instant,
      _ done: @escaping NATSConnection.Done
    ) {
      answer(subject, text, end, done)
    }

    func acknowledge(
      _ subject: String, at place: UInt64, before end: ContinuousClock.Instant,
      _ done: @escaping NATSConnection.Done
    ) {
      answer(subject, Self.shared, end, done)
    }

    /// What stands for an acknowledgement that may share its answer with others.
    static let shared = "+ACK in a batch"

    private func answer(
      _ subject: String, _ text: String, _ end: ContinuousClock.Instant, _ done: @escaping NATSConnection.Done
    ) {
      ends.append(end)
      // The first answers are given; after them all is well.
      let answer = answers.withLock { answers -> Result<NATSMessage, any Error>? in
        answers.isEmpty ? Servers.yes : answers.removeFirst()
      }
      if answer == nil { waiting.append(done) }
      told.append(Told(attempt: String(subject.split(separator: ".")[4]), text: text))
      if let answer { done(answer) }
    }

    /// Answers what had no answer.
    func answer(_ result: Result<NATSMessage, any Error>) { for done in waiting.all { done(result) } }

    func isFirst(_ id: String, token: String) async throws -> Bool {
      told.append(Told(attempt: id, text: token))
      return token == "first"
    }

    let hasBarriers = false
    let turns = Mutex<[NATSTurn]>([])
    /// How many further questions for a turn have to wait.
    let waits = Mutex(0)
    func turn(
      of delivery: NATSDelivery, unless isCancelled: @escaping @Sendable () -> Bool, waits: () -> Void
    )
      async throws -> NATSTurn
    {
      told.append(Told(attempt: "turn?", text: "\(delivery.place)"))
      let hasToWait = self.waits.withLock { count in
        defer { count = max(0, count - 1) }
        return count > 0
      }
      if hasToWait { waits() }
      return turns.withLock { $0.isEmpty ? .first : $0.removeFirst() }
    }

    func countStart(at place: UInt64) async throws -> Int {
      told.append(Told(attempt: "start", text: "\(place)"))
      return 2
    }

    func remove(at place: UInt64) async throws { told.append(Told(attempt: "remove", text: "\(place)")) }

    func forgetStarts(at place: UInt64) async { told.append(Told(attempt: "forget", text: "\(place)")) }

    func bury(_ message: NATSMessage, _ item: NATSItem, reason: String, attempts: Int) async throws {
      told.append(Told(attempt: "\(attempts)", text: reason))
    }

    let open = Mutex(true)
    let suspendsWhenAsked = Mutex(false)
    var isOpen: Bool { open.withLock { $0 } }

    func isCancelled(token: String, again: Bool) async throws -> Bool {
      told.append(Told(attempt: again ? "cancelled again?" : "cancelled?", text: token))
      if suspendsWhenAsked.withLock({ $0 }) { open.withLock { $0 = false } }
      return token == "cancelled"
    }

    let ended = Log<String?>()
    func hasEnded(_ message: NATSMessage) { ended.append(message.id) }

    func keep(_ outcome: ItemOutcome, of message: NATSMessage) async throws {
      switch outcome {
      case .result(let result):
        told.append(Told(attempt: "result", text: String(decoding: result ?? [], as: UTF8.self)))
      case .failed: told.append(Told(attempt: "failed", text: ""))
      case .cancelled: told.append(Told(attempt: "cancelled", text: ""))
      }
      if let refusal { throw refusal }
    }

    func announce(_ outcome: ItemOutcome, of message: NATSMessage) {
      told.append(Told(attempt: "announced", text: "\(outcome)"))
    }

    static let yes = Result<NATSMessage, any Error>.success(NATSMessage(subject: "", reply: nil, bytes: []))

    func delivery(
      attempt: Int, place: Int = 1, id: String = "once-a", time: Int = 7, token: String? = nil,
      wantsResult: Bool = false, order: String = "-", age: Duration = .zero
    ) -> NATSDelivery {
      let reply = "$JS.ACK.concourse_photos.workers.\(attempt).\(place).1.\(time).0"
      return NATSDelivery(
        NATSMessage(
          subject: "concourse.photos.items.\(order).-.-", reply: reply, bytes: [], id: id, token: token,
          wantsResult: wantsResult), of: self, since: .now - age)!
    }
  }

  private func lost(_ failure: NATSFailure) -> Result<NATSMessage, any Error> { .failure(failure) }

  @Test func itemRunsOnceInOneProcess() async {
    let servers = Servers()
    let first = servers.delivery(attempt: 1)
    #expect(servers.held.take(first) == .new)
    #expect(servers.held.take(servers.delivery(attempt: 2)) == .held)
    await first.finish()
    #expect(servers.held.take(servers.delivery(attempt: 3)) == .finished)
    // A leader whose replica has it elsewhere, and one that has it twice.
    #expect(servers.held.take(servers.delivery(attempt: 1, place: 2)) == .finished)
    #expect(servers.held.take(servers.delivery(attempt: 1, place: 2, time: 8)) == .finished)
    // A program may use an id again.
    #expect(servers.held.take(servers.delivery(attempt: 1, id: "id-a", time: 8)) == .new)
    #expect(servers.held.take(servers.delivery(attempt: 1, id: "id-a", time: 9)) == .new)
  }

  @Test func finishedItemsAreForgottenInTheEnd() {
    let servers = Servers()
    let items = (1...10_001).map { NATSItem(id: "once-\($0)", time: 7) }
    for item in items.dropLast() { servers.held.finish(item) }
    #expect(servers.held.take(servers.delivery(attempt: 1, id: "once-1")) == .finished)
    servers.held.finish(items.last!)
    #expect(servers.held.take(servers.delivery(attempt: 1, id: "once-1")) == .new)
    #expect(servers.held.take(servers.delivery(attempt: 1, id: "once-2")) == .finished)
  }

  /// The servers want the acknowledgement of the last delivery.
  @Test func runAdoptsTheRedeliveryOfItsItem() async {
    let servers = Servers(patience: .milliseconds(1))
    let first = servers.delivery(attempt: 1)
    #expect(servers.held.take(first) == .new)
    await first.pastItsEnd()
    servers.patienceNow.withLock { $0 = .seconds(3_600) }
    #expect(servers.held.take(servers.delivery(attempt: 2)) == .held)
    #expect(first.attempt == 2)
    await first.finish()
    #expect(servers.told.all == [.init(attempt: "2", text: "+ACK")])
  }

  /// Both places get the beats and the end, or another worker would be given the item, or its key would wait for it.
  @Test func runAdoptsACopyOfItsItem() async {
    let servers = Servers(patience: .seconds(3_600))
    let first = servers.delivery(attempt: 1, place: 4, order: "k-a")
    #expect(servers.held.take(first) == .new)
    #expect(servers.held.take(servers.delivery(attempt: 2, place: 9, order: "k-a")) == .held)
    #expect(first.places == [4, 9])
    first.beat()
    await first.finish()
    let told = servers.told.all
    for text in ["+WPI", "+ACK"] {
      #expect(told.filter { $0.text == text }.map(\.attempt).sorted() == ["1", "2"])
    }
    #expect(told.filter { $0.attempt == "remove" }.map(\.text) == ["4", "9"])
  }

  @Test func nothingIsSaidAfterTheDeadline() async {
    let servers = Servers(patience: .milliseconds(1))
    for end in 1...4 {
      let delivery = servers.delivery(attempt: 1, id: "once-\(end)")
      #expect(servers.held.take(delivery) == .new)
      await delivery.pastItsEnd()
      switch end {
      case 1: await delivery.finish()
      case 2: await delivery.again(after: .zero)
      case 3: delivery.beat()
      default: #expect(await !delivery.begin(unless: { false }))
      }
    }
    #expect(servers.told.all.isEmpty)
    // What was lost before its start, or given back, may come again.
    for id in [2, 4] {
      #expect(servers.held.take(servers.delivery(attempt: 2, id: "once-\(id)")) == .new)
    }
  }

  @Test func repetitionOfAnIdIsFinishedWithoutARun() async {
    let servers = Servers()
    let now = time(nil) * 1_000_000_000
    let deliveries = ["first", "second"].map {
      servers.delivery(attempt: 1, id: "id-a", time: now, token: $0)
    }
    #expect(await deliveries[0].begin(unless: { false }))
    #expect(await !deliveries[1].begin(unless: { false }))
    #expect(servers.told.all.map(\.attempt) == ["id-a", "cancelled?", "id-a", "1"])
    #expect(servers.told.all.map(\.text) == ["first", "first", "second", "+ACK"])
  }

  /// Until an item has its turn, `cancel` may promise that it does not start.
  @Test func markIsLookedForAfterTheTurn() async {
    let servers = Servers()
    let age = (time(nil) - 3_601) * 1_000_000_000
    let atOnce = servers.delivery(attempt: 1, time: age, token: "cancelled", order: "k-a")
    #expect(await !atOnce.begin(unless: { false }))
    #expect(servers.told.all.map(\.attempt) == ["turn?", "cancelled?", "remove", "1"])
    servers.waits.withLock { $0 = 1 }
    let later = servers.delivery(attempt: 1, place: 2, id: "once-b", time: age, token: "first", order: "k-a")
    #expect(await later.begin(unless: { false }))
    #expect(servers.told.all.dropFirst(4).map(\.attempt) == ["turn?", "cancelled again?"])
  }

  /// The claim for such an item may be forgotten, and one for a later item be there.
  @Test func itemThatIsOlderThanIdsRunsInAnyCase() async {
    let servers = Servers()
    let old = (time(nil) - 3_601) * 1_000_000_000
    #expect(
      await servers.delivery(attempt: 1, id: "id-a", time: old, token: "second").begin(unless: { false }))
    #expect(servers.told.all == [.init(attempt: "cancelled?", text: "second")])
  }

  /// Also one that is older than ids. Its caller learns it before it is gone.
  @Test func cancelledItemIsFinishedWithoutARun() async {
    let servers = Servers()
    let old = (time(nil) - 3_601) * 1_000_000_000
    let delivery = servers.delivery(attempt: 2, id: "id-a", time: old, token: "cancelled", wantsResult: true)
    #expect(servers.held.take(delivery) == .new)
    #expect(await !delivery.begin(unless: { false }))
    #expect(
      servers.told.all == [
        .init(attempt: "cancelled again?", text: "cancelled"), .init(attempt: "cancelled", text: ""),
        .init(attempt: "2", text: "+ACK"),
      ])
  }

  @Test func suspendedItemWaitsOrIsGivenBack() async {
    let servers = Servers()
    servers.open.withLock { $0 = false }
    let (waiting, given) = (servers.delivery(attempt: 1), servers.delivery(attempt: 1, id: "once-b"))
    for delivery in [waiting, given] { #expect(servers.held.take(delivery) == .new) }
    let asked = Log<Bool>()
    async let begins = waiting.begin {
      asked.append(true)
      return false
    }
    await asked.until(2)
    #expect(await !given.begin(unless: { true }))
    #expect(servers.told.all.map(\.text) == ["-NAK"])
    servers.open.withLock { $0 = true }
    #expect(await begins)
    // A queue that is suspended while the worker asks for the id.
    servers.open.withLock { $0 = true }
    let asking = servers.delivery(attempt: 1, id: "id-c", time: time(nil) * 1_000_000_000, token: "first")
    servers.suspendsWhenAsked.withLock { $0 = true }
    #expect(await !asking.begin(unless: { true }))
    #expect(servers.told.all.last?.text == "-NAK")
  }

  /// What the servers may have got is not said twice: by then another worker may have the item.
  @Test func itemIsGivenBackOnce() async {
    let servers = Servers([lost(.timeout(.seconds(2)))])
    let delivery = servers.delivery(attempt: 1)
    #expect(servers.held.take(delivery) == .new)
    await delivery.again(after: .zero)
    #expect(servers.told.all.map(\.text) == ["-NAK"])
    #expect(servers.held.take(servers.delivery(attempt: 2)) == .new)
  }

  /// It could arrive when another worker has the item already.
  @Test func itemIsNotGivenBackCloseToItsDeadline() async {
    let servers = Servers()
    for (age, count) in [(3_000, 1), (3_241, 1)] {
      let delivery = servers.delivery(attempt: 1, age: .seconds(age))
      #expect(servers.held.take(delivery) == .new)
      await delivery.again(after: .zero)
      #expect(!delivery.isLost)
      #expect(servers.told.all.count == count)
    }
    #expect(servers.held.take(servers.delivery(attempt: 2)) == .new)
  }

  @Test func whatNoServerHasGotIsRepeated() async {
    let servers = Servers([lost(.notConnected), lost(.noResponders), lost(.late)])
    let delivery = servers.delivery(attempt: 1)
    #expect(servers.held.take(delivery) == .new)
    await delivery.again(after: .seconds(1))
    #expect(servers.told.all.map(\.text) == Array(repeating: "-NAK {\"delay\": 1000000000}", count: 4))
  }

  @Test func acknowledgementIsRepeatedUntilItIsAnswered() async {
    let servers = Servers([lost(.timeout(.seconds(2))), lost(.notConnected)])
    let delivery = servers.delivery(attempt: 1)
    #expect(servers.held.take(delivery) == .new)
    await delivery.finish()
    #expect(servers.told.all.map(\.text) == Array(repeating: "+ACK", count: 3))
  }

  /// The handler's place is free at once; the delivery ends with the answer, also of a repetition, which is a request of
  /// its own.
  @Test func acknowledgementWhoseAnswerIsLostIsRepeated() async {
    let servers = Servers([nil])
    let delivery = servers.delivery(attempt: 1)
    #expect(servers.held.take(delivery) == .new)
    let ended = Log<Bool>()
    try? await delivery.finish(returning: nil) { ended.append(true) }
    #expect(ended.all.isEmpty)
    #expect(servers.told.all.map(\.text) == [Servers.shared])
    // What comes again meanwhile does not run.
    #expect(servers.held.take(servers.delivery(attempt: 2)) == .finished)
    servers.answer(lost(.unconfirmed))
    await ended.until(1)
    #expect(servers.told.all.map(\.text) == [Servers.shared, "+ACK"])
    #expect(servers.ended.all == ["once-a"])
  }

  /// A text may wait in this process. It must not be sent when another worker may have the item.
  @Test func textsToServersHaveTheDeadlineOfTheDelivery() async {
    let servers = Servers()
    for end in 1...4 {
      let start = ContinuousClock.now
      let delivery = servers.delivery(attempt: 1, id: "once-\(end)")
      let made = ContinuousClock.now
      #expect(servers.held.take(delivery) == .new)
      switch end {
      case 1: await delivery.finish()
      case 2: await delivery.again(after: .zero)
      case 3: delivery.beat()
      default: try? await delivery.finish(returning: nil) {}
      }
      // That of a return is earlier.
      let patience = end == 2 ? servers.patience * 9 / 10 : servers.patience
      let deadlines = start + patience...made + patience
      #expect(servers.ends.all.count == end)
      #expect(servers.ends.all.last.map { deadlines.contains($0) } == true)
    }
  }

  /// Deliveries of an item that waits are no starts.
  @Test func startsOfAnItemWithAnOrderAreCounted() async {
    let servers = Servers()
    let (first, later) = (
      servers.delivery(attempt: 1, place: 4, order: "k-a"),
      servers.delivery(attempt: 5, place: 5, id: "once-b", order: "k-a")
    )
    for delivery in [first, later] {
      #expect(servers.held.take(delivery) == .new)
      #expect(await delivery.begin(unless: { false }))
      await delivery.finish()
    }
    #expect(first.attempt == 1)
    #expect(later.attempt == 2)
    #expect(
      servers.told.all == [
        .init(attempt: "turn?", text: "4"), .init(attempt: "remove", text: "4"),
        .init(attempt: "1", text: "+ACK"), .init(attempt: "turn?", text: "5"),
        .init(attempt: "start", text: "5"), .init(attempt: "remove", text: "5"),
        .init(attempt: "5", text: "+ACK"), .init(attempt: "forget", text: "5"),
      ])
  }

  /// All places of the worker may be taken when the turn of an item comes.
  @Test func itemThatIsLostBeforeItHasAPlaceDoesNotStart() async {
    let servers = Servers([lost(.closed)])
    servers.waits.withLock { $0 = 1 }
    let delivery = servers.delivery(attempt: 1, order: "k-a")
    #expect(servers.held.take(delivery) == .new)
    // The beat learns that the connection is closed.
    let begins = await delivery.begin(unless: { false }, in: Place(taken: { delivery.beat() }))
    #expect(!begins)
    // It is not removed by this worker, too.
    await delivery.finish()
    #expect(servers.told.all.map(\.text) == ["1", "+WPI"])
  }

  /// The deadline passes, and the servers deliver the item to this process again, before it was given up.
  @Test func itemThatIsDeliveredAgainAfterItsDeadlineStillNeedsItsTurn() async {
    let servers = Servers(patience: .milliseconds(1))
    let delivery = servers.delivery(attempt: 1, place: 4, order: "k-a")
    #expect(servers.held.take(delivery) == .new)
    await delivery.pastItsEnd()
    servers.patienceNow.withLock { $0 = .seconds(3_600) }
    servers.beforeHeld.withLock { body in
      body = { #expect(servers.held.take(servers.delivery(attempt: 2, place: 4, order: "k-a")) == .held) }
    }
    #expect(await delivery.begin(unless: { false }))
    #expect(servers.told.all.first == .init(attempt: "turn?", text: "4"))
  }

  /// The item has left its place when it is lost in the line, and is delivered to this process again.
  @Test func itemThatIsLostInTheLineTakesAPlaceBeforeItStarts() async {
    let servers = Servers()
    servers.waits.withLock { $0 = 1 }
    servers.turns.withLock { $0 = [.lost, .first] }
    let delivery = servers.delivery(attempt: 1, order: "k-a")
    #expect(servers.held.take(delivery) == .new)
    let places = Log<String>()
    let place = Place(left: { places.append("left") }, taken: { places.append("taken") })
    #expect(await delivery.begin(unless: { false }, in: place))
    #expect(places.all == ["left", "taken"])
  }

  @Test func itemThatDoesNotGetItsTurnDoesNotStart() async {
    let servers = Servers()
    for (turn, said) in [(NATSTurn.gone, "+ACK"), (.cancelled, "-NAK")] {
      servers.turns.withLock { $0 = [turn] }
      let delivery = servers.delivery(attempt: 1, id: "once-\(said)", order: "k-a")
      #expect(servers.held.take(delivery) == .new)
      #expect(await !delivery.begin(unless: { false }))
      #expect(servers.told.all.last?.text == said)
    }
  }

  /// If the worker dies between both, the item runs again.
  @Test func resultIsStoredBeforeTheAcknowledgement() async {
    let servers = Servers()
    for (attempt, wantsResult) in [(1, true), (2, false)] {
      let delivery = servers.delivery(attempt: attempt, id: "once-\(attempt)", wantsResult: wantsResult)
      #expect(servers.held.take(delivery) == .new)
      try? await delivery.finish(returning: [120]) {}
    }
    #expect(
      servers.told.all == [
        .init(attempt: "result", text: "x"), .init(attempt: "1", text: Servers.shared),
        .init(attempt: "2", text: Servers.shared),
      ])
    #expect(servers.ended.all == ["once-1", "once-2"])
    // It was put aside before its caller learns that.
    let failing = servers.delivery(attempt: 3, id: "once-3", wantsResult: true)
    #expect(await failing.bury(reason: "why"))
    #expect(
      servers.told.all.dropFirst(3) == [
        .init(attempt: "3", text: "why"), .init(attempt: "failed", text: ""),
        .init(attempt: "3", text: "+TERM"),
      ])
  }

  /// The registration gives it back, or puts it aside after its last attempt.
  @Test func itemWhoseResultCannotBeStoredHasNotEnded() async {
    let servers = Servers(refusal: NATSFailure.noResponders)
    let delivery = servers.delivery(attempt: 1, wantsResult: true)
    #expect(servers.held.take(delivery) == .new)
    let ended = Log<Bool>()
    let error = await #expect(throws: ResultNotKept.self) {
      try await delivery.finish(returning: nil) { ended.append(true) }
    }
    #expect(error?.description == "its result cannot be kept: \(NATSFailure.noResponders)")
    #expect(servers.told.all.map(\.text) == [""])
    #expect(ended.all.isEmpty)
    #expect(servers.held.take(servers.delivery(attempt: 1)) == .held)
  }

  /// The stream of results takes nothing any more. No attempt helps, and the item ends.
  @Test func itemWhoseResultIsRefusedIsPutAside() async {
    let servers = Servers(refusal: NATSRefusal(code: 503, err_code: 10077, text: "store is closed"))
    let refused = servers.delivery(attempt: 1, wantsResult: true)
    #expect(servers.held.take(refused) == .new)
    #expect(await !refused.bury(reason: "a leader may be missing"))
    let full = Servers(refusal: NATSRefusal(code: 503, err_code: 10077, text: "maximum bytes exceeded"))
    let delivery = full.delivery(attempt: 1, wantsResult: true)
    #expect(full.held.take(delivery) == .new)
    let error = await #expect(throws: NoAttemptHelps.self) { try await delivery.finish(returning: nil) {} }
    #expect(error?.reason == "its result cannot be kept: maximum bytes exceeded (10077)")
    #expect(await delivery.bury(reason: "full"))
    #expect(
      full.told.all.dropFirst() == [
        .init(attempt: "1", text: "full"), .init(attempt: "failed", text: ""),
        .init(attempt: "announced", text: "\(ItemOutcome.failed(reason: "full", attempts: 1))"),
        .init(attempt: "1", text: "+TERM"),
      ])
  }

  /// While the return has no answer, the item may come again because of it, or because a leader did not know better.
  @Test func itemComesBackBeforeItsReturnIsAnswered() async {
    let servers = Servers([nil])
    let first = servers.delivery(attempt: 2)
    #expect(servers.held.take(first) == .new)
    async let returned: Void = first.again(after: .zero)
    await servers.told.until(1)
    first.beat()
    #expect(servers.held.take(servers.delivery(attempt: 2)) == .held)
    let next = servers.delivery(attempt: 3)
    #expect(servers.held.take(next) == .new)
    servers.answer(Servers.yes)
    await returned
    // The end of the first one does not touch the next, and it has sent no beat.
    #expect(servers.held.take(servers.delivery(attempt: 3)) == .held)
    #expect(servers.told.all.map(\.text) == ["-NAK"])
  }
}

extension NATSDelivery {
  fileprivate func begin(unless isCancelled: @escaping @Sendable () -> Bool) async -> Bool {
    await begin(unless: isCancelled, in: Place())
  }

  fileprivate func pastItsEnd() async {
    while !isLost { await Task.yield() }
  }
}
