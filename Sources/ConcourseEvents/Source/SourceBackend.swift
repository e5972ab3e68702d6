/// Connects a source to what it observes in the kernel or in this process.
///
/// `SourceCore` calls `install` once, on the activating thread. Then `collect`, the handler and `rearm` follow one
/// another on the target queue. In the end `SourceCore` calls `remove` once, from any thread. It holds no lock during
/// these calls.
protocol SourceBackend: AnyObject, Sendable {
  /// Starts to observe. From now on the backend calls `source.raise` for events, from any thread.
  ///
  /// If the system refuses a resource, the backend uses a fallback. If there is none, the source stays silent, as one
  /// does whose descriptor is closed, and one line on standard error says why.
  ///
  /// A backend that raises events by itself retains `source` until `remove`, which breaks the cycle.
  func install(for source: SourceCore)

  /// Determines the handler's `data`, just before the handler is called.
  /// - Parameter pending: the merged values raised since the last call.
  /// - Returns: nil if there is nothing to report after all; the source then calls `rearm` instead of the handler.
  func collect(_ pending: UInt) -> UInt?

  /// Continues observing. Called when the handler has returned.
  func rearm()

  /// Discards the events since the last call, and continues observing. Called by the thread that sets a handler, if
  /// an event came while there was none.
  func restart()

  /// Stops observing, and releases the source. On return the kernel observes nothing for this source any more. A
  /// concurrent `raise` is ignored.
  func remove()
}

extension SourceBackend {
  func collect(_ pending: UInt) -> UInt? { pending }
  func rearm() {}
  func restart() { rearm() }
}

/// The kinds of sources; the raw value is the name in messages.
enum SourceKind: String, CaseIterable {
  case timer, signal, read, write, process
  case fileSystemObject = "file-system object"
  case memoryPressure = "memory pressure"
  case userDataAdd = "user data add"
  case userDataOr = "user data or"
  case userDataReplace = "user data replace"

  /// As recordings have it: the place among the cases.
  var number: UInt8 { UInt8(Self.allCases.firstIndex(of: self)!) }

  /// What `handle` stands for, if the kind has one.
  var handleName: String? {
    switch self {
    case .timer, .memoryPressure, .userDataAdd, .userDataOr, .userDataReplace: nil
    case .signal: "signal"
    case .read, .write, .fileSystemObject: "descriptor"
    case .process: "process"
    }
  }
}

/// Why a source cannot be made: what was requested, and why it cannot be observed.
///
/// The Swift factories trap with the message, since the request is a client bug. The C interface returns NULL.
struct SourceRefusal: Error, Equatable {
  let code: Int
  let message: String

  init(_ code: Int, _ message: String) {
    self.code = code
    self.message = message
  }
}

extension Result where Failure == SourceRefusal {
  /// Returns the source, or traps with the refusal's message.
  func orTrap() -> Success {
    switch self {
    case .success(let made): made
    case .failure(let refusal): Trap.clientBug(refusal.code, refusal.message)
    }
  }
}

/// The check that the factories with an event mask share.
enum SourceMask {
  /// - Parameters:
  ///   - mask: the requested bits.
  ///   - observable: the bits that can be observed.
  ///   - names: the names of the defined bits.
  ///   - factory: the called function, with its arguments.
  ///   - reason: why defined bits may not be observable.
  /// - Returns: why the mask is refused; nil if it is accepted.
  static func refusal(
    of mask: UInt, observable: UInt, names: [(UInt, String)], in factory: String, because reason: String
  ) -> SourceRefusal? {
    if mask == 0 {
      return SourceRefusal(511, "\(factory) with an empty event mask: it would never report anything")
    }
    let unknown = names.reduce(mask) { $0 & ~$1.0 }
    if unknown != 0 {
      return SourceRefusal(
        512,
        "\(factory) with event mask 0x\(String(mask, radix: 16)): the bits 0x\(String(unknown, radix: 16)) mean nothing"
      )
    }
    let missing = names.filter { mask & $0.0 & ~observable != 0 }.map { "." + $0.1 }
    guard !missing.isEmpty else { return nil }
    return SourceRefusal(
      513,
      "\(factory) asks for \(missing.joined(separator: ", ")), which cannot be observed here: \(reason)")
  }
}
