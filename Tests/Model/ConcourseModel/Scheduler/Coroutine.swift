internal import CConcourse
internal import CModelContext

/// One thread of the model.
final class Coroutine {
  enum Status: Equatable {
    /// Can make its next step.
    case ready
    /// Spins: continues after another coroutine has changed a word.
    case paused
    /// Sleeps on a word, with an optional deadline in virtual time.
    case asleep(address: UInt, until: UInt64?)
    /// The scenario's body, in `Model.run()`.
    case joining
    case finished
  }

  let id: Int
  var name: String
  /// Whether sleeping forever is not a deadlock.
  let isBackground: Bool
  let threadState: UnsafeMutablePointer<concourse_thread>
  var context: OpaquePointer?
  var body: (() -> Void)?
  var status = Status.ready
  /// Just chosen, so its next step needs no further decision.
  var isFresh = true
  var timedOut = false
  /// Whether it uses a processor until the end of its sleep (`Scheduler.compute`).
  var computes = false
  /// The number of changes that it made.
  var ownChanges = 0
  /// The number of changes by others when it last paused.
  var changesSeen = 0
  var history: UInt64
  var clock = VectorClock()
  /// The number of words and the like that it has made.
  var things: UInt64 = 0
  /// The stores that it has made, but not come to yet.
  var early: [EarlyStore.Pending] = []
  /// Its last steps if it has gone on alone: the reads that its next store may overtake.
  var overtaken: [EarlyStore.Overtaken] = []
  /// The step before which it has made early stores, until it reads what they were made for.
  var expectsNewer: Int?
  /// The step of its last releasing store.
  var lastRelease = -1
  /// The last value that it saw in each word; kept only while a fault needs it.
  var lastSeen: [UInt: WordBits] = [:]

  init(id: Int, name: String, isBackground: Bool, body: @escaping () -> Void) {
    self.id = id
    self.name = name
    self.isBackground = isBackground
    self.body = body
    history = History.mix(0, UInt64(id) + 1)
    clock[id] = 1
    threadState = .allocate(capacity: 1)
    threadState.initialize(to: concourse_thread())
    threadState.pointee.id = UInt32(id) + 1
  }

  deinit {
    threadState.deinitialize(count: 1)
    threadState.deallocate()
  }

  var title: String { "\(id) \(name)" }
}
