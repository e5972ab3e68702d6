/// What stands between a source and the part of the kernel, or of this process, that it listens to.
///
/// The source calls `install` once when it is activated, on the activating thread; then `collect`, the
/// handler and `rearm` follow one another on the target queue, and in the end `remove` is called once, from
/// any thread. Nobody holds a lock during these calls.
protocol SourceBackend: AnyObject, Sendable {
  /// Starts to observe, and tells `source` of events by `raise` from then on, from any thread.
  ///
  /// What the system refuses is overcome by other means if there are any; if not, the source stays silent,
  /// as one whose descriptor was closed, and one line on standard error says why.
  ///
  /// A backend that raises events by itself holds `source` until `remove`: there the two let go of each other.
  func install(for source: SourceCore)

  /// What the handler is to find in `data`, asked just before it is called.
  /// - Parameter pending: what has been raised since the last call, merged.
  /// - Returns: nil if there is nothing to tell after all; then `rearm` follows at once.
  func collect(_ pending: UInt) -> UInt?

  /// The handler has returned: go on observing.
  func rearm()

  /// There is a handler again, after an event came while there was none: forgets what has happened since,
  /// and goes on observing. Called by whoever sets the handler.
  func restart()

  /// Stops observing, and lets go of the source. On return the kernel has let go; a `raise` that is under way
  /// is ignored.
  func remove()
}

extension SourceBackend {
  func collect(_ pending: UInt) -> UInt? { pending }
  func rearm() {}
  func restart() { rearm() }
}

/// The kinds of sources, by the name that messages give them.
enum SourceKind: String {
  case timer, signal, read, write, process
  case fileSystemObject = "file-system object"
  case memoryPressure = "memory pressure"
  case userDataAdd = "user data add"
  case userDataOr = "user data or"
  case userDataReplace = "user data replace"

  /// What `handle` is, if the kind has one.
  var handleName: String? {
    switch self {
    case .timer, .memoryPressure, .userDataAdd, .userDataOr, .userDataReplace: nil
    case .signal: "signal"
    case .read, .write, .fileSystemObject: "descriptor"
    case .process: "process"
    }
  }
}

/// Why a source cannot be made: what was asked for, and what the system can or cannot do instead.
///
/// The Swift factories die with it, since asking for the impossible is a bug of the client's; the C
/// interface returns NULL.
struct SourceRefusal: Error, Equatable {
  let message: String

  init(_ message: String) { self.message = message }
}

extension Result where Failure == SourceRefusal {
  /// The source, or the end of the process with one line that says why there is none.
  func orTrap() -> Success {
    switch self {
    case .success(let made): made
    case .failure(let refusal): Trap.clientBug(refusal.message)
    }
  }
}

/// The part that all checks of masks have in common.
enum SourceMask {
  /// - Parameters:
  ///   - mask: the bits asked for.
  ///   - observable: the bits that can be observed.
  ///   - names: the bits that have names.
  ///   - factory: what was called.
  ///   - reason: why named bits that cannot be observed cannot be.
  /// - Returns: why the mask is refused, nil if it is not.
  static func refusal(
    of mask: UInt, observable: UInt, names: [(UInt, String)], in factory: String, because reason: String
  ) -> SourceRefusal? {
    if mask == 0 {
      return SourceRefusal("\(factory) with an empty event mask: it would never report anything")
    }
    let unknown = names.reduce(mask) { $0 & ~$1.0 }
    if unknown != 0 {
      return SourceRefusal(
        "\(factory) with event mask 0x\(String(mask, radix: 16)): the bits 0x\(String(unknown, radix: 16)) mean nothing"
      )
    }
    let missing = names.filter { mask & $0.0 & ~observable != 0 }.map { "." + $0.1 }
    guard !missing.isEmpty else { return nil }
    return SourceRefusal(
      "\(factory) asks for \(missing.joined(separator: ", ")), which cannot be observed here: \(reason)")
  }
}
