/// The functions of an ELF file by their addresses.
struct FunctionTable {
  private var functions: [ElfImage.Function] = []

  /// Without functions.
  init() {}

  init(path: String) {
    guard let image = try? ElfImage(path: path) else { return }
    var found = image.functions(in: .full)
    if found.isEmpty { found = image.functions(in: .dynamic) }
    functions = found.sorted { $0.address < $1.address }
  }

  func name(at address: UInt64) -> String? { index(at: address).map { functions[$0].name } }

  func range(at address: UInt64) -> Range<UInt64>? {
    index(at: address).map { index in
      let (start, size) = (functions[index].address, max(functions[index].size, 1))
      return start..<start + min(size, .max - start)
    }
  }

  private func index(at address: UInt64) -> Int? {
    var low = 0
    var high = functions.count
    while low < high {
      let middle = (low + high) / 2
      if functions[middle].address <= address { low = middle + 1 } else { high = middle }
    }
    guard low > 0, case let function = functions[low - 1], address - function.address < max(function.size, 1)
    else { return nil }
    return low - 1
  }
}
