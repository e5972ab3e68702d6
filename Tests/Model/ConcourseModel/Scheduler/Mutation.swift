internal import Glibc

/// One change of the engine for `Scripts/mutate`, to see whether a scenario fails: an operation at one place in the
/// source is weakened. Made while the engine runs, so that all mutants need one build.
struct Mutation {
  enum Kind: String {
    /// Acquiring, releasing or both, but no longer in the total order.
    case total
    /// No longer acquiring, or no longer releasing.
    case acquire, release
    /// The same for a compare-exchange that fails.
    case failureTotal, failureAcquire
    /// A load returns what its thread last saw in the word: a second look without effect.
    case blind
    /// A wake-up that has no effect.
    case wake
    /// A decision or statement of a transition (mutants.py); the operation is its number.
    case decision
  }

  private let file: String
  private let line: UInt
  private let operation: String
  private let kind: Kind

  /// The one of this process: CONCOURSE_MODEL_MUTANT, as in "QueueState.swift:41:compareExchange:acquire".
  static let current = getenv("CONCOURSE_MODEL_MUTANT").map { Mutation(String(cString: $0))! }

  /// The number of the changed decision; -1 if there is none.
  static let chosen = current.flatMap { $0.kind == .decision ? Int($0.operation) : nil } ?? -1

  private init?(_ text: String) {
    let parts = text.split(separator: ":").map(String.init)
    guard parts.count == 4, let line = UInt(parts[1]), let kind = Kind(rawValue: parts[3]) else { return nil }
    (file, self.line, operation, self.kind) = ("ConcourseModel/" + parts[0], line, parts[2], kind)
  }

  /// Whether it changes this operation.
  func meets(_ operation: String, _ file: StaticString, _ line: UInt) -> Bool {
    line == self.line && operation == self.operation && file.description == self.file
  }

  static func meets(_ kind: Kind, _ operation: String, _ file: StaticString, _ line: UInt) -> Bool {
    guard let current, current.kind == kind else { return false }
    return current.meets(operation, file, line)
  }

  func applied(to ordering: Ordering, isFailure: Bool) -> Ordering {
    var weaker = ordering
    switch (kind, isFailure) {
    case (.total, false), (.failureTotal, true): weaker.isTotal = false
    case (.acquire, false), (.failureAcquire, true): (weaker.acquires, weaker.isTotal) = (false, false)
    case (.release, false): (weaker.releases, weaker.isTotal) = (false, false)
    default: break
    }
    return weaker
  }

  // MARK: - Where mutations are possible

  /// The operations that have been made, if CONCOURSE_MODEL_SITES names a file for them.
  // SAFETY: used on the exploring thread only; explorations run one at a time.
  private nonisolated(unsafe) static var sites: Set<String> = []
  private static let output = getenv("CONCOURSE_MODEL_SITES").map { String(cString: $0) }
  static let isRecording = output != nil

  static func record(
    _ operation: String, _ file: StaticString, _ line: UInt, _ ordering: Ordering?, _ failure: Ordering? = nil
  ) {
    let site = "\(file):\(line):\(operation):\(ordering?.letters ?? ""):\(failure?.letters ?? "")"
    guard sites.insert(site).inserted, let output, let stream = fopen(output, "a") else { return }
    fputs(site + "\n", stream)
    fclose(stream)
  }
}

extension Ordering {
  fileprivate var letters: String {
    (isTotal ? "T" : "") + (acquires ? "A" : "") + (releases ? "R" : "")
  }
}

/// Whether the instrumented copy of the engine makes this change (mutants.py). Used in no other build.
public func isMutant(_ number: Int) -> Bool {
  if Mutation.isRecording { Mutation.record("\(number)", "ConcourseModel/Mutants.swift", 0, nil) }
  return number == Mutation.chosen
}
