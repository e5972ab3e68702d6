import Testing

@testable import ConcourseTool

@Suite("Processors of processes that are examined")
struct ProcessorTests {
  /// Instructions of arm64 as bytes, with others in front so that seven bytes can be looked at.
  private func code(_ instruction: UInt32) -> [UInt8] {
    [0xAA, 0xBB, 0xCC] + withUnsafeBytes(of: instruction.littleEndian) { Array($0) }
  }

  @Test(
    "calls on arm64 are known from what only looks like them",
    arguments: [
      // bl forward; bl backward; blr x8; blraa x8, x9; blraaz x8
      (0x9400_0010, true), (0x97FF_FFF0, true), (0xD63F_0100, true), (0xD73F_0909, true), (0xD63F_091F, true),
      // b; br x8; ret; nop; svc 0
      (0x1400_0010, false), (0xD61F_0100, false), (0xD65F_03C0, false), (0xD503_201F, false),
      (0xD400_0001, false),
    ] as [(UInt32, Bool)])
  func calls(instruction: UInt32, isCall: Bool) {
    #expect(Processor.arm64.endsWithCall(code(instruction)) == isCall)
  }

  @Test("where a direct call leads, forward and backward")
  func destinations() {
    func arm(_ instruction: UInt32) -> UInt64? {
      Processor.arm64.destination(ofCall: Array(code(instruction).suffix(5)), before: 0x4_0004)
    }
    #expect(arm(0x9400_0010) == 0x4_0040)
    #expect(arm(0x97FF_FFF0) == 0x3_FFC0)
    #expect(arm(0xD63F_0100) == nil)
    #expect(Processor.x86.destination(ofCall: [0xE8, 0x10, 0, 0, 0], before: 0x4_0005) == 0x4_0015)
    #expect(Processor.x86.destination(ofCall: [0xE8, 0xF0, 0xFF, 0xFF, 0xFF], before: 0x4_0005) == 0x3_FFF5)
    #expect(Processor.x86.destination(ofCall: [0xE9, 0x10, 0, 0, 0], before: 0x4_0005) == nil)
  }

  /// Memory of a process: code at `codeStart`, a stack at `stackStart`.
  private final class MadeMemory: TargetMemory {
    static let codeStart: UInt64 = 0x1_0000
    static let stackStart: UInt64 = 0x7F_0000
    var words: [UInt64: UInt64] = [:]

    func instruction(_ address: UInt64, _ value: UInt32) {
      withUnsafeBytes(of: value.littleEndian) { write(Array($0), at: address) }
    }

    func write(_ code: [UInt8], at address: UInt64) {
      for (place, byte) in zip(address..., code) {
        words[place & ~7, default: 0] |= UInt64(byte) << (place % 8 * 8)
      }
    }

    func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
      for index in bytes.indices {
        let place = address &+ UInt64(index)
        bytes[index] = UInt8(truncatingIfNeeded: (words[place & ~7] ?? 0) >> (place % 8 * 8))
      }
      return true
    }

    func populated(_ region: MappedRegion) -> [Range<UInt64>] { [region.start..<region.end] }

    func process(_ processor: Processor) -> TargetProcess {
      func region(_ start: UInt64, isCode: Bool) -> MappedRegion {
        MappedRegion(
          start: start, end: start + 0x1000, isReadable: true, isWritable: !isCode, isExecutable: isCode,
          isPrivate: true, offset: 0, path: "")
      }
      return TargetProcess(
        id: 1, name: "made", processor: processor, memory: self,
        regions: [region(Self.codeStart, isCode: true), region(Self.stackStart, isCode: false)], threads: [])
    }
  }

  private func registers(x8: UInt64 = 0, frame: UInt64 = 0, link: UInt64 = 0, counter: UInt64) -> [UInt64] {
    var registers = (0..<34).map { UInt64($0 + 100) }
    (registers[8], registers[29], registers[30]) = (x8, frame, link)
    (registers[31], registers[32]) = (MadeMemory.stackStart, counter)
    return registers
  }

  @Test("a thread of arm64 is in a system call at one and just behind one", arguments: [0, 4, 8] as [UInt64])
  func systemCalls(behind: UInt64) {
    let memory = MadeMemory()
    memory.instruction(MadeMemory.codeStart + 0x100, Processor.armSystemCall)
    var thread = TargetThread(id: 1)
    thread.take(registers: registers(x8: 98, counter: MadeMemory.codeStart + 0x100 + behind), of: .arm64)
    thread.noteSystemCall(in: memory)
    #expect(thread.call?.number == (behind <= 4 ? Processor.arm64.futex : nil))
    #expect(thread.call?.arguments == (behind <= 4 ? [100, 101, 102, 103, 104, 105] : nil))
    #expect(Processor.arm64.name(ofSystemCall: 98) == "futex")
  }

  @Test("a stack of arm64 is walked from a function without a frame, past signed return addresses")
  func walk() {
    let memory = MadeMemory()
    let (code, stack) = (MadeMemory.codeStart, MadeMemory.stackStart)
    // Functions of 256 bytes; each but the last calls the next one at its start + 16.
    for number in 0..<4 as Range<UInt64> {
      memory.instruction(code + number << 8 + 16, 0x9400_0000 | UInt32(256 - 16) / 4)
    }
    func after(_ number: UInt64) -> UInt64 { code + number << 8 + 20 }
    let signature: UInt64 = 0x00AB << 48
    // The frame of function 3, then those of its callers.
    memory.words[stack + 0x20] = stack + 0x40
    memory.words[stack + 0x28] = after(2) | signature
    memory.words[stack + 0x40] = stack + 0x60
    memory.words[stack + 0x48] = after(1) | signature
    memory.words[stack + 0x60] = 0
    memory.words[stack + 0x68] = after(0)
    var thread = TargetThread(id: 1)
    let leaf = code + 4 << 8 + 8
    thread.take(
      registers: registers(frame: stack + 0x20, link: after(3) | signature, counter: leaf), of: .arm64)
    let found = StackWalk.addresses(of: thread, in: memory.process(.arm64)) { address in
      let start = address & ~0xFF
      return start..<start + 256
    }
    #expect(found == [leaf, after(3), after(2), after(1), after(0)])
  }

  @Test("a stack of x86-64 is not walked from a word that a function without a frame has left alone")
  func leftWord() {
    let memory = MadeMemory()
    let (code, stack) = (MadeMemory.codeStart, MadeMemory.stackStart)
    // As `sleep`: a job, called through a register, calls function 1, which saves the frame pointer and calls 2, which
    // saves none and calls 3.
    let (run, job) = (code + 0x500, code)
    memory.write([0x55, 0x48, 0x89, 0xE5, 0xFF, 0xD0], at: run)
    for number in 0..<3 as Range<UInt64> {
      memory.write(number == 2 ? [0x48, 0x83, 0xEC, 0x08] : [0x55, 0x48, 0x89, 0xE5], at: job + number << 8)
      memory.write([0xE8, 235, 0, 0, 0], at: job + number << 8 + 16)
    }
    func after(_ number: UInt64) -> UInt64 { job + number << 8 + 21 }
    func frame(_ place: UInt64, _ next: UInt64, _ address: UInt64) {
      (memory.words[stack + place], memory.words[stack + place + 8]) = (next == 0 ? 0 : stack + next, address)
    }
    frame(0x10, 0x90, after(1))  // the word that an earlier call has left
    frame(0x30, 0x60, after(0))
    frame(0x60, 0x90, run + 6)
    frame(0x90, 0, run + 6)
    var thread = TargetThread(id: 1)
    thread.stackPointer = stack
    thread.programCounter = job + 0x308
    let found = StackWalk.addresses(of: thread, in: memory.process(.x86)) { address in
      let start = address & ~0xFF
      return start..<start + 256
    }
    #expect(found == [thread.programCounter, after(1), after(0), run + 6])
  }

  @Test("a function of x86-64 that saves the frame pointer late is walked, one that never does is not")
  func lateFrames() {
    let nops = { [UInt8](repeating: 0x90, count: $0) }
    let frame: [UInt8] = [0x55, 0x48, 0x89, 0xE5]
    #expect(Processor.x86.mayLinkFrames(nops(10) + frame))
    #expect(Processor.x86.mayLinkFrames(nops(2000) + frame))
    // push %r13; mov %rsp, %rbp. Then a constant that has the byte of push %rbp.
    #expect(!Processor.x86.mayLinkFrames(nops(2000) + [0x41] + frame))
    #expect(!Processor.x86.mayLinkFrames(nops(2000) + [0xB8, 0x55, 0, 0, 0]))
    #expect(!Processor.x86.mayLinkFrames([0x41, 0x55] + nops(2000)))
    let memory = MadeMemory()
    let (code, stack) = (MadeMemory.codeStart, MadeMemory.stackStart)
    // Function 0, called through a register, calls 1, which saves the frame pointer behind 100 bytes and calls 2, which
    // has no frame.
    memory.write(frame + [0xFF, 0xD0], at: code + 0x500)
    memory.write(frame, at: code)
    memory.write([0xE8, 235, 0, 0, 0], at: code + 16)
    memory.write(nops(100) + frame, at: code + 0x100)
    memory.write([0xE8, 0x83, 0, 0, 0], at: code + 0x178)
    let (run, afterFirst, afterSecond) = (code + 0x506, code + 21, code + 0x17D)
    // Below the frame of function 1 is what 2 has on the stack; above it the frame of 0, and that of its caller.
    memory.words[stack + 0x18] = afterSecond
    (memory.words[stack + 0x30], memory.words[stack + 0x38]) = (stack + 0x60, afterFirst)
    (memory.words[stack + 0x60], memory.words[stack + 0x68]) = (0, run)
    var thread = TargetThread(id: 1)
    (thread.stackPointer, thread.programCounter) = (stack, code + 0x208)
    let found = StackWalk.addresses(of: thread, in: memory.process(.x86)) { address in
      let start = address & ~0xFF
      return start..<start + 256
    }
    #expect(found == [thread.programCounter, afterSecond, afterFirst, run])
  }
}
