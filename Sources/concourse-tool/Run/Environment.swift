import Glibc

/// The entries of an environment, as bytes: they need not be valid text.
struct Environment: Equatable {
  var entries: [[UInt8]]

  /// The loader's list of libraries to load first.
  static let loaderVariable = "LD_PRELOAD"
  /// Tells the library which entry to restore; see CConcoursePreload.
  static let ownVariable = "CONCOURSE_RUN_PRELOAD"

  /// The process's environment.
  static func current() -> Environment {
    var entries: [[UInt8]] = []
    // SAFETY: a null-terminated array of C strings. The process has one thread, and nothing changes the array.
    var next: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> = environ
    while let entry = next.pointee {
      entries.append(Array(UnsafeRawBufferPointer(start: entry, count: strlen(entry))))
      next += 1
    }
    return Environment(entries: entries)
  }

  func value(of name: String) -> [UInt8]? {
    let start = Array("\(name)=".utf8)
    return entries.first { $0.starts(with: start) }.map { Array($0.dropFirst(start.count)) }
  }

  mutating func set(_ name: String, to value: String) {
    let start = Array("\(name)=".utf8)
    entries.removeAll { $0.starts(with: start) }
    entries.append(start + Array(value.utf8))
  }

  func text(of name: String) -> String? {
    value(of: name).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The environment that makes the loader load `libraries` first.
  ///
  /// They follow the libraries already in the list, because some of those (the sanitizers') must come first. Another
  /// libdispatch.so is removed from the list: a process cannot have two.
  ///
  /// - Parameter children: Whether the program's children inherit the list. Otherwise the library restores the
  ///   previous entry.
  func switched(to libraries: [String], children: Bool) -> Environment {
    let start = Array("\(Self.loaderVariable)=".utf8)
    let ownStart = Array("\(Self.ownVariable)=".utf8)
    let original = entries.first { $0.starts(with: start) }
    let listed = (original ?? []).dropFirst(start.count).split {
      $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: " ")
    }
    let kept = listed.filter { path in
      !path.split(separator: UInt8(ascii: "/")).suffix(1).elementsEqual([
        Array(ProgramCheck.dispatchName.utf8)[...]
      ])
    }
    var result: [[UInt8]] = []
    let added = libraries.map { Array($0.utf8)[...] }.filter { !kept.contains($0) }
    let list = start + (kept + added).joined(separator: [UInt8(ascii: ":")])
    for entry in entries where !entry.starts(with: ownStart) {
      if !entry.starts(with: start) {
        result.append(entry)
      } else if entry == original && !result.contains(list) {
        // At its old position, so that restoring it restores the order.
        result.append(list)
      }
    }
    if original == nil { result.append(list) }
    if !children { result.append(ownStart + (original ?? [])) }
    return Environment(entries: result)
  }
}
