/// The system's list of libraries, which `ldconfig` keeps in /etc/ld.so.cache.
struct LoaderCache {
  private let files: [String: [String]]

  static let empty = LoaderCache(files: [:])

  private init(files: [String: [String]]) {
    self.files = files
  }

  /// The list at `path`; empty if it is missing or in an unknown format.
  init(path: String) {
    guard let file = FileBytes(path: path), file.size <= FileBytes.maximumRead,
      let bytes = file.read(at: 0, count: Int(file.size))
    else {
      self = .empty
      return
    }
    self.init(bytes: bytes)
  }

  init(bytes: [UInt8]) {
    var start = 0
    // Older systems put a list in an older format first, padded to a multiple of eight.
    if bytes.starts(with: "ld.so-1.7.0".utf8), let count: UInt32 = bytes.number(at: 12) {
      start = (16 + Int(count) * 12 + 7) & ~7
    }
    guard start < bytes.count, bytes[start...].starts(with: "glibc-ld.so.cache1.1".utf8),
      let count: UInt32 = bytes.number(at: start + 20)
    else {
      self = .empty
      return
    }
    func text(at offset: UInt32) -> String? {
      let place = start + Int(offset)
      guard place < bytes.count, let end = bytes[place...].firstIndex(of: 0) else { return nil }
      return String(decoding: bytes[place..<end], as: UTF8.self)
    }
    var files: [String: [String]] = [:]
    for index in 0..<Int(count) {
      let entry = start + 48 + index * 24
      guard let name: UInt32 = bytes.number(at: entry + 4), let path: UInt32 = bytes.number(at: entry + 8)
      else {
        break
      }
      if let name = text(at: name), let path = text(at: path) { files[name, default: []].append(path) }
    }
    self.init(files: files)
  }

  /// The paths of libraries of that name, for any platform.
  func paths(of name: String) -> [String] {
    files[name] ?? []
  }
}
