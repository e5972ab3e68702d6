/// The return addresses on a thread's stack, from the chain of frame pointers that Swift's code keeps.
struct StackWalk {
  private static let most = 200
  private static let mostBytes: UInt64 = 1 << 20
  /// How much of a function is searched for where it saves the frame pointer.
  private static let mostCode: UInt64 = 4096

  private let process: TargetProcess
  private let stack: [UInt8]
  private let base: UInt64
  /// The addresses of the function that an address is in; nil if unknown.
  private let function: (UInt64) -> Range<UInt64>?

  /// - Returns: the thread's program counter and the return addresses, the innermost first.
  static func addresses(
    of thread: TargetThread, in process: TargetProcess, function: @escaping (UInt64) -> Range<UInt64>?
  ) -> [UInt64] {
    guard thread.programCounter != 0 else { return [] }
    guard let region = process.region(of: thread.stackPointer), region.isWritable,
      case let size = min(region.end - thread.stackPointer, mostBytes),
      let bytes = process.memory.bytes(at: thread.stackPointer, count: Int(size))
    else { return [thread.programCounter] }
    let walk = StackWalk(process: process, stack: bytes, base: thread.stackPointer, function: function)
    return walk.walk(thread)
  }

  private func word(_ address: UInt64) -> UInt64? {
    guard address >= base, address - base < UInt64(stack.count) else { return nil }
    return stack.number(at: Int(address - base))
  }

  private func walk(_ thread: TargetThread) -> [UInt64] {
    var found = [thread.programCounter]
    // A function that calls none has no frame of its own: its return address is on top, on arm64 in a register.
    if let top = process.processor == .arm64 ? thread.returnAddress : word(base), isReturnAddress(top),
      called(before: top)?.contains(thread.programCounter) ?? false
    {
      found.append(top)
    }
    var place = base
    if let frame = thread.framePointer, frame % 8 == 0, word(frame) != nil, chain(from: frame).count > 1 {
      place = frame
    } else if let frame = nextFrame(after: base) {
      if let address = callOfOther(below: frame) { found.append(address) }
      place = frame
    } else {
      return found
    }
    while found.count < Self.most {
      let links = chain(from: place)
      for (_, address) in links where found.last != address { found.append(address) }
      // Code without frame pointers has interrupted the chain.
      guard let last = links.last, let next = nextFrame(after: last.frame + 16) else { break }
      place = next
    }
    return found
  }

  /// Both processors have the caller's frame pointer and above it the return address.
  private func returnAddress(_ frame: UInt64) -> UInt64? { word(frame &+ 8).map(process.processor.plain) }

  /// The frames that a frame pointer leads to: where each is, and its return address.
  private func chain(from start: UInt64) -> [(frame: UInt64, address: UInt64)] {
    var links: [(UInt64, UInt64)] = []
    var frame = start
    while links.count < Self.most, let next = word(frame), let address = returnAddress(frame),
      isReturnAddress(address)
    {
      links.append((frame, address))
      guard next > frame, next % 8 == 0 else { break }
      frame = next
    }
    return links
  }

  /// The first place that looks like a frame from which at least one more can be reached.
  private func nextFrame(after start: UInt64) -> UInt64? {
    let end = base + UInt64(stack.count)
    guard end - start >= 24 else { return nil }
    var place = (start + 7) & ~7
    let limit = place + min(end - place, 65_536)
    while limit - place >= 16 {
      if let next = word(place), next > place, next - place < 1 << 20, next % 8 == 0,
        case let links = chain(from: place), links.count > 1,
        zip(links, links.dropFirst()).prefix(5).allSatisfy({ isCalled($0.address, from: $1.address) }),
        links.prefix(5).allSatisfy({ mayLinkFrames(calledBefore: $0.address) })
      {
        return place
      }
      place += 8
    }
    return nil
  }

  /// Whether the function at `inner` is the one that the call before `outer` calls, if that is known. What earlier
  /// calls have left on the stack leads to frames of now, too, but not from the right function.
  private func isCalled(_ inner: UInt64, from outer: UInt64) -> Bool {
    called(before: outer)?.contains(inner - 1) ?? true
  }

  /// Whether the function that the call before the address calls may have made a frame. One that makes none may leave a
  /// word below its return address that leads to a frame of now.
  private func mayLinkFrames(calledBefore address: UInt64) -> Bool {
    guard let callee = called(before: address),
      case let size = min(Self.mostCode, callee.upperBound - callee.lowerBound),
      let code = process.memory.bytes(at: callee.lowerBound, count: Int(size))
    else { return true }
    return process.processor.mayLinkFrames(code)
  }

  private func called(before address: UInt64) -> Range<UInt64>? {
    guard let code = process.memory.bytes(at: address &- 5, count: 5),
      let destination = process.processor.destination(ofCall: code, before: address)
    else { return nil }
    return function(destination)
  }

  /// The return address of a call that the function of the frame has made: into code without frame pointers.
  private func callOfOther(below frame: UInt64) -> UInt64? {
    guard let caller = returnAddress(frame), let range = called(before: caller) else { return nil }
    var place = frame
    while place > base {
      place -= 8
      if let address = word(place).map(process.processor.plain), range.contains(address),
        isReturnAddress(address)
      {
        return address
      }
    }
    return nil
  }

  /// Whether a call instruction ends at the address.
  private func isReturnAddress(_ address: UInt64) -> Bool {
    guard address > 8, let region = process.region(of: address), region.isExecutable else { return false }
    guard let before = process.memory.bytes(at: address &- 7, count: 7) else { return true }
    return process.processor.endsWithCall(before)
  }
}
