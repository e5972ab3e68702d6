// Reads the input as a core dump, and reports on it.
@testable import ConcourseTool

var seeds: [[UInt8]] {
  let top: UInt64 = .max - 4096
  return [
    CoreBuilder().bytes,
    CoreBuilder(segments: [(0x40_0000, 5, CoreBuilder.engine, nil), (0x50_0000, 6, [0], nil)]).bytes,
    CoreBuilder(
      process: -1, stackPointer: top + 4000,
      segments: [(top, 6, [UInt8](repeating: 1, count: 256), 4096)]
    ).bytes,
  ]
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  FuzzFile.write(FuzzInput(start, count).rest)
  guard let process = try? CoreFile.open(FuzzFile.path) else { return 0 }
  for region in process.regions {
    for address in [region.start, region.end &- 8, region.start &- 1] {
      _ = process.memory.word(address)
      _ = process.memory.text(at: address)
      _ = SwiftType(metadata: address, in: process.memory)
    }
  }
  _ = process.threads.map { StackWalk.addresses(of: $0, in: process) { _ in nil } }
  _ = NodeIndex(in: process)
  guard let report = try? Report.make(of: process) else { return 0 }
  _ = ReportText.text(report, showsAll: true, isColoured: true)
  _ = ReportJSON.text(report)
  return 0
}
