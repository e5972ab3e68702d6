import ConcourseRecording
import Glibc

/// Names for the code of items, from the symbol tables of the recorded process's modules.
///
/// Starting the toolchain's symbolizer would take longer than reading the tables, and files and lines are not shown.
final class FunctionNames {
  /// Sorted by base.
  private let modules: [RecordedModule]
  private var tables: [String: FunctionTable] = [:]
  private var known: [UInt64: String] = [:]

  /// Where the recorded process sees its files.
  private let root: String

  /// The names of the tasks of Swift Concurrency.
  var tasks: [UInt64: String]

  init(_ recording: RecordedRun, root: String = "") {
    modules = recording.modules.sorted { $0.base < $1.base }
    tasks = recording.tasks
    self.root = root
  }

  var count: Int { modules.count }

  /// The function without its types; module and offset if the code has no symbol. Of a job its task and priority.
  func name(of code: UInt64) -> String {
    if let job = RecordedJob(code) { return job.name(tasks[job.task]) }
    if let name = known[code] { return name }
    let name = find(code)
    known[code] = name
    return name
  }

  private func find(_ code: UInt64) -> String {
    guard code != 0 else { return "item" }
    guard let module = module(of: code) else { return "0x" + String(code, radix: 16) }
    let symbol = symbol(of: code, module)
    if let symbol, Demangler.isThunk(symbol) { return "a closure" }
    return symbol.map(Demangler.readable)
      ?? "\(FilePath.lastPart(of: module.path))+0x" + String(code - module.base, radix: 16)
  }

  private func module(of code: UInt64) -> RecordedModule? { modules.last { $0.base <= code } }

  private func symbol(of code: UInt64, _ module: RecordedModule) -> String? {
    let exact = root + module.path
    let table = tables[module.path] ?? FunctionTable(path: access(exact, R_OK) == 0 ? exact : module.path)
    tables[module.path] = table
    return table.name(at: code - module.base)
  }

  // MARK: Closures that only a thunk stands for

  /// Items of which only the compiler's thunk is recorded get the labels of their queues for names.
  ///
  /// The library records the closure that a block of Swift's has captured. That may be a thunk, too, around another
  /// closure, which is gone once the item has run.
  func nameThunks(_ recording: inout RecordedRun) {
    let labels = recording.labelItems { code in
      guard RecordedJob(code) == nil, let module = module(of: code) else { return false }
      return symbol(of: code, module).map(Demangler.isThunk) ?? false
    }
    known.merge(labels) { $1 }
  }

  // MARK: Queues without a label

  /// Names the queues that have no label by the function that made them.
  func nameQueues(_ recording: inout RecordedRun) {
    for index in recording.names.indices where recording.names[index].text.isEmpty {
      if let maker = maker(recording.names[index].frames) {
        recording.names[index].text = "(made in \(maker))"
      }
    }
  }

  /// The first function on the stack that is not the library's, or Dispatch's Swift interface.
  private func maker(_ frames: [UInt64]) -> String? {
    let own = [
      "$s16ConcourseRuntime", "$s15ConcourseEvents", "$s12ConcourseABI", "$s9Concourse", "$s8Dispatch",
      // Generic functions of the standard library are compiled into the library.
      "$sSo17OS_dispatch_queueC8Dispatch", "dispatch_", "_dispatch_", "concourse_", "$ss",
    ]
    // A return address may be the first of the next function.
    return frames.lazy.map { $0 &- 1 }.first { code in
      guard let module = module(of: code) else { return false }
      let file = FilePath.lastPart(of: module.path)
      if file.hasPrefix("libdispatch.so") || file.hasPrefix("libswiftDispatch.so") { return false }
      guard let symbol = symbol(of: code, module) else { return true }
      return !own.contains { symbol.hasPrefix($0) }
    }.map { name(of: $0) }
  }
}
