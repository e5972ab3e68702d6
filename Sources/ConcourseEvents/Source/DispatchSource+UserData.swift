extension DispatchSource {
  /// Creates a source whose `data` is the sum of the values passed to `add(data:)` since the last call.
  /// - Parameter queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_DATA_ADD`.
  public class func makeUserDataAddSource(queue: DispatchQueue? = nil) -> any DispatchSourceUserDataAdd {
    makeUserDataSource(.userDataAdd, .add, queue)
  }

  /// Creates a source whose `data` is the bitwise OR of the values passed to `or(data:)` since the last call.
  /// - Parameter queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_DATA_OR`.
  public class func makeUserDataOrSource(queue: DispatchQueue? = nil) -> any DispatchSourceUserDataOr {
    makeUserDataSource(.userDataOr, .or, queue)
  }

  /// Creates a source whose `data` is the last value passed to `replace(data:)`.
  /// - Parameter queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_DATA_REPLACE`.
  public class func makeUserDataReplaceSource(queue: DispatchQueue? = nil)
    -> any DispatchSourceUserDataReplace
  {
    makeUserDataSource(.userDataReplace, .replace, queue)
  }

  private static func makeUserDataSource(
    _ kind: SourceKind, _ merging: SourceCore.Merging, _ queue: DispatchQueue?
  ) -> DispatchSource {
    DispatchSource(
      SourceCore(
        kind: kind, handle: 0, mask: 0, merging: merging, target: queue, backend: UserDataBackend()))
  }
}

/// A source that adds up the values it receives between two calls of its handler.
public protocol DispatchSourceUserDataAdd: DispatchSourceProtocol {
  /// See the extension's member.
  func add(data: UInt)
}

/// A source that combines the bits it receives between two calls of its handler.
public protocol DispatchSourceUserDataOr: DispatchSourceProtocol {
  /// See the extension's member.
  func or(data: UInt)
}

/// A source that keeps the last value it receives between two calls of its handler.
public protocol DispatchSourceUserDataReplace: DispatchSourceProtocol {
  /// See the extension's member.
  func replace(data: UInt)
}

extension DispatchSourceUserDataAdd {
  /// Adds to the pending data, from any thread. A sum of zero calls no handler. No effect after `cancel()`. Traps on
  /// a source of another kind. Matching C function: `dispatch_source_merge_data`.
  /// - Parameter data: the summand.
  public func add(data: UInt) { core.merge(data, as: .userDataAdd) }
}

extension DispatchSourceUserDataOr {
  /// Sets bits in the pending data, from any thread. Zero calls no handler. No effect after `cancel()`. Traps on a
  /// source of another kind. Matching C function: `dispatch_source_merge_data`.
  /// - Parameter data: the bits.
  public func or(data: UInt) { core.merge(data, as: .userDataOr) }
}

extension DispatchSourceUserDataReplace {
  /// Replaces the pending data, from any thread. Zero calls no handler. No effect after `cancel()`. Traps on a source
  /// of another kind. Matching C function: `dispatch_source_merge_data`.
  /// - Parameter data: the new value.
  public func replace(data: UInt) { core.merge(data, as: .userDataReplace) }
}

extension SourceCore {
  /// Merges a client's data, or traps if the source is of another kind.
  func merge(_ value: UInt, as kind: SourceKind) {
    guard self.kind == kind else {
      Trap.clientBug(515, "data for a \(kind.rawValue) source was merged into \(description)")
    }
    raise(value)
  }
}

extension DispatchSource: DispatchSourceUserDataAdd, DispatchSourceUserDataOr, DispatchSourceUserDataReplace {
}

/// The backend of a user data source. It observes nothing: only `add`, `or` and `replace` raise events.
final class UserDataBackend: SourceBackend {
  func install(for source: SourceCore) {}
  func remove() {}
}
