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
