/// What has become of a name that is followed: concluded from the file that is open under it and from what
/// the name leads to now. Pure, so that each case can be tested without a race.
package enum Fate: Equatable, Sendable {
  /// As before.
  case same
  /// Nothing was there, and now there is a file.
  case appeared(FileIdentity)
  /// Nothing is there, for this reason.
  case missing(Int32)
  /// The open file has lost the name, and nothing else has it.
  case gone(Int32)
  /// The name leads to another file.
  case replaced(by: FileIdentity)
  /// The name leads to something whose lines cannot be followed.
  case unsuitable(isDirectory: Bool)

  package static func of(open: FileIdentity?, now: Sight) -> Fate {
    switch (open, now) {
    case (nil, .nothing(let error)): .missing(error)
    case (_?, .nothing(let error)): .gone(error)
    case (nil, .file(let identity, _)): .appeared(identity)
    case (let open?, .file(let identity, _)): open == identity ? .same : .replaced(by: identity)
    case (_, .directory): .unsuitable(isDirectory: true)
    case (_, .other): .unsuitable(isDirectory: false)
    }
  }
}

/// What there is to be read of an open file.
package enum Growth: Equatable, Sendable {
  case none
  case some(Int64)
  /// The file is shorter than what was read: it was emptied, and what is in it now is new.
  case truncated

  package static func of(size: Int64, read: Int64) -> Growth {
    if size > read { .some(size - read) } else if size < read { .truncated } else { .none }
  }
}
