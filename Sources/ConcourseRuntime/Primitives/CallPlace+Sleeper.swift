internal import CConcourse

extension CallPlace {
  /// An address in the engine's code.
  static var engine: UInt { UInt(concourse_code_address()) }

  /// How far the stack of a thread is searched.
  private static let mostBytes: UInt = 1 << 20
  /// How much of it the C library's functions may use before the program's frame.
  private static let mostOfCall: UInt = 1024

  /// The return addresses on the stack of another thread, which sleeps in a function of the C library.
  ///
  /// That function has no frame pointer, and its caller's is in a register that is not known. So the innermost frame is the
  /// first place from which the chain of frames leads past the item that the thread runs. If the function has not saved
  /// the register beside its return address, that frame is the caller's, and the return address is below.
  /// - Parameters:
  ///   - stack: the thread's stack pointer.
  ///   - item: a place on the stack, in the engine's frames.
  static func returnAddresses(ofSleeper stack: UInt, below item: UInt) -> [UInt] {
    guard item > stack, item - stack < mostBytes, stack % 8 == 0, let memory = ReadFile("/proc/self/mem"),
      let words = memory.bytes(at: stack, count: Int(item - stack) & ~7)
    else { return [] }
    let modules = Module.all()
    func word(_ place: UInt) -> UInt? { words.number(at: Int(place - stack)) }
    func module(_ address: UInt) -> Module? {
      address < 16 ? nil : modules.first { $0.range.contains(address - 1) }
    }
    func isReturn(_ address: UInt) -> Bool {
      guard module(address) != nil, let code = memory.bytes(at: address - 8, count: 8) else { return false }
      return endsWithCall(code)
    }
    func leadsPastItem(_ first: UInt) -> Bool {
      var frame = first
      while frame < item {
        guard let next = word(frame).map(callersFrame), next > frame, next % 8 == 0, next - frame < mostBytes,
          let address = word(frame + 8), isReturn(address)
        else { return false }
        frame = next
      }
      // The engine's function has a frame, too. Memory behind the stack has none.
      return memory.bytes(at: frame + 8, count: 8)?.number(at: 0).map(isReturn) ?? false
    }
    var frame = stack
    while frame + 16 <= item && !leadsPastItem(frame) { frame += 8 }
    guard frame + 16 <= item else { return [] }
    let outer = returnAddresses(from: frame)
    for place in stride(from: stack, to: min(frame, stack + mostOfCall), by: 8) {
      // Other words than return addresses lead to code, too.
      guard let address = word(place), let module = module(address), !isSystem(module.name),
        let code = memory.bytes(at: address - 8, count: 8), callsFunction(code, address, module.range)
      else { continue }
      return [address] + outer
    }
    return outer
  }

  /// Whether the last instruction calls a function by its address, as a call of the C library's does.
  private static func callsFunction(_ code: [UInt8], _ address: UInt, _ module: Range<UInt>) -> Bool {
    #if arch(arm64)
      return endsWithCall(code)
    #else
      if code[2] == 0xFF && code[3] == 0x15 { return true }
      let distance: Int32 = code.number(at: 4)!
      return code[3] == 0xE8 && module.contains(address &+ UInt(bitPattern: Int(distance)))
    #endif
  }

  /// Whether the last instruction may be a call.
  private static func endsWithCall(_ code: [UInt8]) -> Bool {
    #if arch(arm64)
      let instruction: UInt32 = code.number(at: 4)!
      // To an address, or to one in a register.
      return instruction >> 26 == 0b100101 || instruction & 0xFFFF_FC1F == 0xD63F_0000
    #else
      // To an address, or through a register or memory: FF with 2 in the second byte's middle.
      return code[3] == 0xE8 || (1...6).contains { code[$0] == 0xFF && code[$0 + 1] >> 3 & 7 == 2 }
    #endif
  }
}
