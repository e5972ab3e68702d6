// Reports on a process that lies: a real one (FUZZ_PROCESS), of which the input replaces memory, regions and registers.
import Glibc

@testable import ConcourseTool

/// Passes reads on to a process, and notes what is read besides the search through all memory: there, each word
/// matters.
private final class TracedMemory: TargetMemory {
  let process: LiveMemory
  private(set) var places: Set<UInt64> = []

  init(_ process: Int32) { self.process = LiveMemory(process: process) }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    guard process.read(address, into: bytes) else { return false }
    // The search reads whole pages.
    guard bytes.count % 4096 != 0 else { return true }
    for place in stride(from: address & ~15, to: address + UInt64(bytes.count), by: 16) {
      places.insert(place)
    }
    return true
  }

  func populated(_ region: MappedRegion) -> [Range<UInt64>] { process.populated(region) }
}

/// What was noted, as it was then, in pieces of 16 bytes.
private final class KeptMemory: TargetMemory {
  private struct Page {
    let bytes = UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 16)
    var isKept = [Bool](repeating: false, count: 256)
  }

  private var pages: [UInt64: Page] = [:]
  private var ranges: [UInt64: [Range<UInt64>]] = [:]
  /// Of words that the input may replace, and what it has replaced.
  let addresses: [UInt64]
  private var replaced: [(address: UInt64, value: UInt64)] = []

  init(_ traced: TracedMemory, _ regions: [MappedRegion]) {
    // A core dump may have memory where no process has it.
    let places = traced.places.union(stride(from: UInt64.max - 4095, to: UInt64.max - 15, by: 16)).sorted()
    addresses = places.flatMap { [$0, $0 + 8] }
    for place in places {
      let page = pages[place / 4096] ?? Page()
      _ = traced.process.read(place, into: .init(start: page.bytes + Int(place % 4096), count: 16))
      pages[place / 4096] = page
      pages[place / 4096]!.isKept[Int(place % 4096 / 16)] = true
    }
    for region in regions where region.isWritable {
      ranges[region.start] = places.filter { region.contains($0) }.reduce(into: []) { ranges, place in
        if let last = ranges.last, last.upperBound == place {
          ranges[ranges.count - 1] = last.lowerBound..<place + 16
        } else {
          ranges.append(place..<place + 16)
        }
      }
    }
  }

  private func word(at address: UInt64) -> UnsafeMutablePointer<UInt64> {
    // SAFETY: only for the addresses of kept words, which are aligned.
    (pages[address / 4096]!.bytes + Int(address % 4096)).assumingMemoryBound(to: UInt64.self)
  }

  subscript(_ address: UInt64) -> UInt64 {
    get { word(at: address).pointee }
    set {
      replaced.append((address, word(at: address).pointee))
      word(at: address).pointee = newValue
    }
  }

  func restore() {
    while let (address, value) = replaced.popLast() { word(at: address).pointee = value }
  }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    guard !address.addingReportingOverflow(UInt64(bytes.count)).overflow else { return false }
    var done = 0
    while done < bytes.count {
      let place = address + UInt64(done)
      let (offset, count) = (Int(place % 4096), min(4096 - Int(place % 4096), bytes.count - done))
      guard let page = pages[place / 4096],
        page.isKept[offset / 16...(offset + count - 1) / 16].allSatisfy({ $0 })
      else { return false }
      // SAFETY: within the page, and within `bytes`.
      memcpy(bytes.baseAddress! + done, page.bytes + offset, count)
      done += count
    }
    return true
  }

  func populated(_ region: MappedRegion) -> [Range<UInt64>] { ranges[region.start] ?? [] }
}

// SAFETY: only the thread of the fuzzer uses them.
/// The process as one report finds it. It counts as a core dump, so that nothing is looked at twice; and its files
/// are not read, which would take most of the time.
nonisolated(unsafe) private let (process, memory): (TargetProcess, KeptMemory) = {
  guard let id = getenv("FUZZ_PROCESS").flatMap({ Int32(String(cString: $0)) }),
    let live = try? TargetProcess.live(id)
  else { fatalError("FUZZ_PROCESS is not the id of a process that may be read") }
  let regions = live.regions.map { region in
    var region = region
    if !region.path.isEmpty { region.path = "/nowhere" + region.path }
    return region
  }
  func examined(_ memory: any TargetMemory) -> TargetProcess {
    TargetProcess(
      id: live.id, name: live.name, memory: memory, regions: regions, threads: live.threads, core: "kept",
      now: live.now)
  }
  let traced = TracedMemory(id)
  guard let report = try? Report.make(of: examined(traced)), !report.snapshot.queues.isEmpty else {
    fatalError("process \(id) has no queues")
  }
  let kept = KeptMemory(traced, regions)
  return (examined(kept), kept)
}()

var seeds: [[UInt8]] { [[], [12, 0, 0, 0], Array(10..<42)] }

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var input = FuzzInput(start, count)
  defer { memory.restore() }
  func address() -> UInt64 {
    memory.addresses[Int(input.next(UInt16.self)) * 7919 % memory.addresses.count]
  }
  /// Another number, one near the former, the place of a word, or one near the end of all memory.
  func replacement(_ kind: UInt8, _ former: UInt64) -> UInt64 {
    switch kind % 4 {
    case 0: input.next()
    case 1: former &+ UInt64(bitPattern: Int64(input.next(Int8.self)))
    case 2: address()
    default: UInt64.max - UInt64(input.next(UInt8.self))
    }
  }
  var (regions, threads) = (process.regions, process.threads)
  var id = process.id
  var changes = 0
  while !input.rest.isEmpty && changes < 64 {
    changes += 1
    let kind: UInt8 = input.next()
    switch kind / 4 % 16 {
    case 0:
      let place = Int(input.next(UInt8.self)) % regions.count
      let (start, end) = (regions[place].start, regions[place].end)
      regions[place].start = min(replacement(kind, start), end)
      regions[place].end = max(replacement(kind, end), regions[place].start)
    case 1:
      let place = Int(input.next(UInt8.self)) % threads.count
      var registers = (0..<process.processor.registers).map { _ in
        replacement(kind, threads[place].stackPointer)
      }
      registers[15] = UInt64(input.next(UInt8.self))
      threads[place].take(registers: registers, of: process.processor)
    case 2: id = input.next()
    default:
      let place = address()
      memory[place] = replacement(kind, memory[place])
    }
  }
  regions.sort { $0.start < $1.start }
  let lying = TargetProcess(
    id: id, name: process.name, memory: memory, regions: regions, threads: threads, core: process.core)
  guard let report = try? Report.make(of: lying) else { return 0 }
  _ = ReportText.text(report, showsAll: true, isColoured: true)
  _ = ReportJSON.text(report)
  return 0
}
