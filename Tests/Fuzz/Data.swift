// Transforms data between all formats, in pieces that the input cuts.
@testable import ConcourseEvents

/// A source and a target format and the place of the cuts, then the content.
var seeds: [[UInt8]] {
  let formats = DataFormat.allCases.indices.map { UInt8($0) }
  let text: [UInt8] = Array("MZXW6YTBOI====== \u{FEFF}Aé€😀".utf8)
  return formats.map { [$0, ($0 + 1) % 7, 5] + text } + [[5, 4, 3, 0xFF, 0xFE, 0x3D, 0xD8, 0, 0xDE]]
}

/// The same content in regions of this size.
private func pieces(_ bytes: ArraySlice<UInt8>, of size: Int) -> DispatchData {
  var data = DispatchData.empty
  var rest = bytes
  while !rest.isEmpty {
    let piece = rest.prefix(size)
    data.append(piece.withUnsafeBytes { DispatchData(bytes: $0) })
    rest = rest.dropFirst(size)
  }
  return data
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var input = FuzzInput(start, count)
  let all = DataFormat.allCases
  let source = all[Int(input.next(UInt8.self)) % all.count]
  let target = all[Int(input.next(UInt8.self)) % all.count]
  let size = Int(input.next(UInt8.self)) % 32 + 1
  let whole = pieces(input.rest, of: max(input.rest.count, 1))
  let cut = pieces(input.rest, of: size)
  let result = whole.transformed(from: source, to: target).map(Array.init)
  precondition(result == cut.transformed(from: source, to: target).map(Array.init), "the cuts matter")
  // What was made is well formed, and means the same.
  if let result, target != .none {
    let again = pieces(result[...], of: size).transformed(from: target, to: target).map(Array.init)
    precondition(again == result, "\(source) as \(target) is not what it says")
  }
  return 0
}
