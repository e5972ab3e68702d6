/// A name that is followed, whichever file it leads to.
// SAFETY: the variables are OWNED BY the follower's queue.
final class FollowedName: @unchecked Sendable {
  let path: Bytes
  /// Given by the user, not found in a directory: waited for when it is missing.
  let isArgument: Bool
  var file: OpenFile?
  /// The path leads to a directory, whose files are followed.
  var isDirectory = false
  /// What was last said about it, so that it is said once.
  var state = State.unknown

  enum State: Equatable {
    case unknown
    case present
    /// Another name of a file that is followed already.
    case otherName(of: Bytes)
    case missing(Int32)
    case unsuitable
  }

  init(_ path: Bytes, isArgument: Bool) {
    self.path = path
    self.isArgument = isArgument
  }

  /// Whether something may change for it of which no event would tell.
  var needsRecheck: Bool {
    switch state {
    case .unknown, .missing: true
    // A directory's subdirectories are none of our business; should a file take the place of one, the
    // directory says so.
    case .unsuitable: isArgument
    case .present, .otherName: false
    }
  }
}
