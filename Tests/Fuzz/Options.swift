// Reads the input as the words of a command line, for each command, and as a token of `concourse explore`.
@testable import ConcourseSchedules
@testable import ConcourseTool

var seeds: [[UInt8]] {
  let token = ScheduleToken(
    program: 1, build: 2, seed: 1 << 40, isRealTime: true,
    switches: [ScheduleSwitch(thread: 1, next: 2, point: 300)])
  let lines = [
    ["--children", "--library=/lib/x.so", "--", "program"], ["--json", "4711"], ["--core", "core.1"],
    ["--interval", "0.5", "--count", "3", "17"], ["--seconds", "2.5", "--output", "x.html", "program", "-x"],
    ["--schedules", "10", "--strategy", "pct", "--seed", "7", "./program"], ["--replay", token.text, "x"],
  ]
  return lines.map { Array($0.joined(separator: "\0").utf8) } + [Array(token.text.utf8)]
}

private func parse<Options: CommandOptions>(_: Options.Type, _ words: [String]) {
  if case .unusable(let reason) = Options.parse(words) { precondition(!reason.isEmpty) }
}

/// A token with these bytes and their checksum, which the fuzzer would not guess.
private func signed(_ bytes: ArraySlice<UInt8>) -> String {
  let digits = Array("0123456789abcdefghjkmnpqrstvwxyz")
  let sum = Fingerprint(bytes).short
  let bits = (bytes + [UInt8(sum >> 8), UInt8(sum & 0xFF)]).flatMap { byte in
    (0..<8).map { Int(byte >> (7 - $0) & 1) }
  }
  return String(
    stride(from: 0, to: bits.count, by: 5).map { place in
      digits[(0..<5).reduce(0) { $0 << 1 | (place + $1 < bits.count ? bits[place + $1] : 0) }]
    })
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = FuzzInput(start, count).rest
  let words = bytes.split(separator: 0, omittingEmptySubsequences: false).map {
    String(decoding: $0, as: UTF8.self)
  }
  parse(RunOptions.self, words)
  parse(ReportOptions.self, words)
  parse(TopOptions.self, words)
  parse(TraceOptions.self, words)
  parse(ExploreOptions.self, words)
  for text in [String(decoding: bytes, as: UTF8.self), signed(bytes)] {
    guard let token = try? ScheduleToken(text) else { continue }
    precondition((try? ScheduleToken(token.text)) == token, "what was read is not what is written")
  }
  return 0
}
