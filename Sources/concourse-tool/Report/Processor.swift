/// What differs between processors in a process that is examined: registers, calls, return addresses, and system calls
/// (SystemCallNames.swift).
enum Processor {
  case x86
  case arm64

  /// The processor of this command, and so of the processes that run beside it.
  static var here: Processor {
    #if arch(arm64)
      .arm64
    #else
      .x86
    #endif
  }

  /// - Parameter machine: The number in the header of an ELF file.
  init?(machine: UInt16) {
    switch machine {
    case 62: self = .x86
    case 183: self = .arm64
    default: return nil
    }
  }

  /// How many words the kernel has for the general registers.
  var registers: Int {
    switch self {
    case .x86: 27
    case .arm64: 34
    }
  }

  /// The address itself: the highest bits of a return address on arm64 may be its signature.
  func plain(_ address: UInt64) -> UInt64 {
    switch self {
    case .x86: address
    case .arm64: address & 0xFFFF_FFFF_FFFF
    }
  }

  /// Whether the bytes before a return address may be a call.
  /// - Parameter code: The seven bytes before the address.
  func endsWithCall(_ code: [UInt8]) -> Bool {
    switch self {
    case .x86:
      // call rel32
      if code[2] == 0xE8 { return true }
      // call through a register or memory: FF /2, with two to seven bytes.
      for length in 2...7 where code[7 - length] == 0xFF && code[7 - length + 1] >> 3 & 7 == 2 {
        return true
      }
      return false
    case .arm64:
      let instruction: UInt32 = code.number(at: 3)!
      // bl; blr; blraa and its kin, which also check a signature.
      return instruction >> 26 == 0b100101 || instruction & 0xFFFF_FC1F == 0xD63F_0000
        || instruction & 0xFEFF_F800 == 0xD63F_0800
    }
  }

  /// Where a direct call leads that ends at an address; nil if it is not one.
  /// - Parameter code: The five bytes before the address.
  func destination(ofCall code: [UInt8], before address: UInt64) -> UInt64? {
    switch self {
    case .x86:
      guard code[0] == 0xE8, let distance: Int32 = code.number(at: 1) else { return nil }
      return address &+ UInt64(bitPattern: Int64(distance))
    case .arm64:
      guard let instruction: UInt32 = code.number(at: 1), instruction >> 26 == 0b100101 else { return nil }
      // A signed number of instructions, in 26 bits, from the call on.
      let distance = Int64(Int32(bitPattern: instruction << 6) >> 6) * 4
      return address &- 4 &+ UInt64(bitPattern: distance)
    }
  }

  /// Whether a function may save the frame pointer, so that its frame can be a link of the chain.
  /// - Parameter code: The beginning of the function.
  func mayLinkFrames(_ code: [UInt8]) -> Bool {
    switch self {
    case .x86:
      code.indices.contains { place in
        // push %rbp; behind 0x41 it would be push %r13.
        guard code[place] == 0x55, place == 0 || code[place - 1] != 0x41 else { return false }
        // What only looks like it does no harm near the start: the chain is checked. A function that can end early saves
        // registers later, and then a mov %rsp, %rbp follows.
        return place < 64 || code[place...].starts(with: [0x55, 0x48, 0x89, 0xE5])
      }
    // A frame may be anywhere in what the function has on the stack.
    case .arm64: true
    }
  }

  /// `svc 0` on arm64. A thread in a system call is just behind it, or at it if the call will be made again.
  static let armSystemCall: UInt32 = 0xD400_0001
}

extension TargetThread {
  /// General registers, as the kernel orders them.
  mutating func take(registers: [UInt64], of processor: Processor) {
    guard registers.count >= processor.registers else { return }
    switch processor {
    case .x86:
      framePointer = registers[4]
      programCounter = registers[16]
      stackPointer = registers[19]
      threadPointer = registers[21]
      let number = Int(truncatingIfNeeded: registers[15])
      if number >= 0 {
        // rdi, rsi, rdx, r10, r8, r9
        call = (number, [14, 13, 12, 7, 9, 8].map { registers[$0] })
      }
    case .arm64:
      framePointer = registers[29]
      returnAddress = processor.plain(registers[30])
      stackPointer = registers[31]
      programCounter = registers[32]
      // Whether it is in a call, the registers do not say: `noteSystemCall`.
      registersOfCall = (Int(truncatingIfNeeded: registers[8]), Array(registers[0...5]))
    }
  }

  /// On arm64: the thread is in a system call if it is at one, or just behind one.
  mutating func noteSystemCall(in memory: any TargetMemory) {
    guard let registersOfCall, call == nil else { return }
    let isAt = memory.number(at: programCounter, as: UInt32.self) == Processor.armSystemCall
    let isBehind = memory.number(at: programCounter &- 4, as: UInt32.self) == Processor.armSystemCall
    if isAt || isBehind { call = registersOfCall }
  }
}
