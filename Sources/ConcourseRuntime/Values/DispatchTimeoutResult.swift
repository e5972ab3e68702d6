// What a wait with a deadline answers.

/// How a wait with a timeout ended.
@frozen
public enum DispatchTimeoutResult: Sendable {
  /// What was waited for happened. Matches a C wait's 0.
  case success

  /// The deadline passed first, and the wait left no trace. Matches a C wait's non-zero result.
  case timedOut
}
