// Text that another process or file has chosen: labels and names of functions, lines of /proc.
@testable import ConcourseTool

var seeds: [[UInt8]] {
  [
    "$s4main4move4from2toySi_SitF", "closure #1 @Sendable () -> () in main.move(from: Int, to: Int) -> ()",
    "(1) suspend resume partial function for generic specialization <A> of (move in _0123) : Swift.Int",
    "7f00-8000 r-xp 00000000 08:01 12 /lib/x y.so",
    "\u{202E}\u{1B}]0;title\u{7} \u{1F468}\u{200D}\u{1F469}<é",
  ].map { Array($0.utf8) }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = FuzzInput(start, count).rest
  let text = String(decoding: bytes, as: UTF8.self)
  _ = Demangler.shorten(text)
  _ = MappedRegion(line: text[...])
  _ = Suggestion.unknown("option", text, of: ["--json", "--all"])
  let line = ForeignText.line(text)
  precondition(line.unicodeScalars.allSatisfy { $0.effect == .none }, "a line has what a terminal obeys")
  let json = ForeignText.json(text)
  precondition(
    json.unicodeScalars.allSatisfy { $0.effect == .none && $0 != "<" }, "JSON has what a terminal obeys")
  _ = ScreenLine(line).text(.none, limit: 20)
  _ = bytes.isEmpty ? nil : Array(bytes).concourseVersion
  return 0
}
