import Glibc

/// The entries of an environment, as bytes: nobody promises that they are text.
struct Environment: Equatable {
  var entries: [[UInt8]]

  /// The loader's list of libraries that come first.
  static let loaderVariable = "LD_PRELOAD"
  /// Tells the library what to put back; see CConcoursePreload.
  static let ownVariable = "CONCOURSE_RUN_PRELOAD"

  /// The process's own.
  static func current() -> Environment {
    var entries: [[UInt8]] = []
    // SAFETY: an array of terminated strings with a null at its end; the process has one thread, and changes
    // nothing there.
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

  func text(of name: String) -> String? {
    value(of: name).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The environment in which the loader loads `libraries` first.
  ///
  /// They come after what is in the list already, since some (the sanitizers') insist on being
  /// first. Another libdispatch.so is left out: one process cannot have two.
  ///
  /// - Parameter children: whether it stays so for the program's children; otherwise the library is told
  ///   what to put back.
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
        // In its place, so that the order is the old one once it is put back.
        result.append(list)
      }
    }
    if original == nil { result.append(list) }
    if !children { result.append(ownStart + (original ?? [])) }
    return Environment(entries: result)
  }
}
