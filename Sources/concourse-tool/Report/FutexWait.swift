/// A thread's wait in the system call `futex`, which serves semaphores, conditions, joins and a program's own words, too.
/// The C library's mutexes are told from these as in `sleeping.c` of CConcourse.
struct FutexWait {
  let address: UInt64
  private let operation: UInt64
  private let expected: UInt32

  init(_ arguments: [UInt64]) {
    address = arguments[0]
    // Without the flags for private memory and the clock.
    operation = arguments[1] & 0x7F
    expected = UInt32(truncatingIfNeeded: arguments[2])
  }

  private enum Operation {
    static let wait: UInt64 = 0
    static let lockPI: UInt64 = 6
    static let waitBitset: UInt64 = 9
    static let lockPI2: UInt64 = 13
  }

  /// The bits of a word that the kernel knows: threads sleep for it, and the thread that has it.
  private static let (hasWaiters, ownerMask): (UInt32, UInt32) = (1 << 31, (1 << 30) - 1)
  /// `PTHREAD_MUTEX_ROBUST_NORMAL_NP`, a flag of a mutex's kind.
  private static let robust: UInt32 = 16

  /// The owner of the mutex that the thread waits for; nil if the wait is not for a mutex.
  func ownerOfMutex(in memory: any TargetMemory) -> UInt32? {
    switch operation {
    case Operation.lockPI, Operation.lockPI2:
      // Swift's `Mutex` is only this word.
      return Self.ownerInWord(at: address, in: memory)
    case Operation.wait, Operation.waitBitset:
      // 2 is the word of a mutex for which threads sleep; a robust one has its owner, too.
      guard
        expected == 2
          || expected & Self.hasWaiters != 0 && (Self.kind(at: address, in: memory) ?? 0) & Self.robust != 0
      else { return nil }
    default: return nil
    }
    return Self.ownerOfMutex(at: address, in: memory)
  }

  /// The owner of the mutex there. nil if it has none, or the memory is not like a locked mutex: its first word is not 0,
  /// the third has the owner, the fourth the number of its users, the fifth its kind.
  static func ownerOfMutex(at address: UInt64, in memory: any TargetMemory) -> UInt32? {
    guard let bytes = memory.bytes(at: address, count: 20), let word: UInt32 = bytes.number(at: 0), word != 0,
      let owner: UInt32 = bytes.number(at: 8), owner != 0, let users: UInt32 = bytes.number(at: 12),
      (1..<1 << 22).contains(users), let kind: UInt32 = bytes.number(at: 16), kind < 1024,
      word <= 2 || word & ownerMask == owner
    else { return nil }
    return owner
  }

  /// Whether the mutex there, or the word of one that passes on priorities, has this owner.
  static func isOwned(by owner: UInt32, at address: UInt64, in memory: any TargetMemory) -> Bool {
    ownerOfMutex(at: address, in: memory) == owner || ownerInWord(at: address, in: memory) == owner
  }

  private static func ownerInWord(at address: UInt64, in memory: any TargetMemory) -> UInt32? {
    guard let word: UInt32 = memory.number(at: address), word & ownerMask != 0 else { return nil }
    return word & ownerMask
  }

  private static func kind(at address: UInt64, in memory: any TargetMemory) -> UInt32? {
    memory.number(at: address &+ 16)
  }
}
