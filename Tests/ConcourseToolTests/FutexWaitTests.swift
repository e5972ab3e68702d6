import Glibc
import Testing

@testable import ConcourseTool

/// Which waits are for a mutex, and whether a thread has slept in one of them all the time.
@Suite("waits for mutexes")
struct FutexWaitTests {
  private static let address: UInt64 = 0x1000
  private static let (wait, wake, waitBitset, lockPI): (UInt64, UInt64, UInt64, UInt64) = (0, 1, 9, 6)
  private static let isPrivate: UInt64 = 128

  private func owner(_ operation: UInt64, _ expected: UInt64, _ words: [UInt32]) -> UInt32? {
    FutexWait([Self.address, operation, expected, 0, 0, 0]).ownerOfMutex(in: WordMemory(Self.address, words))
  }

  @Test("a locked mutex has its owner, also a robust one and one that passes on priorities")
  func mutexes() {
    let owned = 7 | 1 << 31 as UInt32
    #expect(owner(Self.wait | Self.isPrivate, 2, [2, 0, 7, 1, 0]) == 7)
    #expect(owner(Self.waitBitset | Self.isPrivate | 256, 2, [2, 0, 7, 3, 128]) == 7)
    #expect(owner(Self.wait, UInt64(owned), [owned, 0, 7, 1, 16]) == 7)
    #expect(owner(Self.lockPI, 0, [owned, 0, 7, 1, 32]) == 7)
    // Swift's `Mutex`.
    #expect(owner(Self.lockPI | Self.isPrivate, 0, [owned]) == 7)
  }

  @Test("a semaphore, a condition, a join and a program's own word are no mutex, whatever stands behind them")
  func otherWords() {
    // Of a mutex that has been unlocked meanwhile.
    #expect(owner(Self.wait, 2, [0, 0, 0, 0, 0]) == nil)
    // The word expects another value than a mutex with waiters has.
    for expected in [0, 1, 3, 7] as [UInt64] {
      #expect(owner(Self.wait, expected, [UInt32(expected), 0, 7, 1, 0]) == nil)
    }
    #expect(owner(Self.waitBitset, 7, [7, 0, 7, 1, 0]) == nil)
    #expect(owner(Self.wake, 2, [2, 0, 7, 1, 0]) == nil)
    // The value is that of a mutex, but the words behind are not.
    #expect(owner(Self.wait, 2, [2, 0, 7, 0, 0]) == nil)
    #expect(owner(Self.wait, 2, [2, 0, 7, 1, 0x5555]) == nil)
    #expect(owner(Self.wait, 2, [2, 0, 7, .max, 0]) == nil)
    #expect(owner(Self.wait, 2, [2, 0, 7]) == nil)
  }

  @Test("the mutexes of this C library")
  func ownMutex() throws {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    defer { mutex.deallocate() }
    pthread_mutex_init(mutex, nil)
    defer { pthread_mutex_destroy(mutex) }
    let memory = LiveMemory(process: getpid())
    let address = UInt64(UInt(bitPattern: mutex))
    #expect(FutexWait.ownerOfMutex(at: address, in: memory) == nil)
    let own = try #require(
      ProcFile.link("/proc/thread-self")?.split(separator: "/").last.flatMap { UInt32($0) })
    pthread_mutex_lock(mutex)
    #expect(FutexWait.ownerOfMutex(at: address, in: memory) == own)
    pthread_mutex_unlock(mutex)
    #expect(FutexWait.ownerOfMutex(at: address, in: memory) == nil)
  }

  /// Two threads that take two mutexes in turn are seen like that: each is in the same wait at both looks.
  @Test(
    "a thread that has been awake, and waits for the same mutex again, has not slept all the time",
    .enabled(if: getenv("CONCOURSE_SANITIZER") == nil))
  func sameWaitAgain() throws {
    let fixture = try ReportFixture()
    let program = Examined(try fixture.spawn(fixture.waits, []))
    program.program.waitForOutput("ready")
    let process = program.program.identifier
    func waiter() throws -> (process: TargetProcess, thread: TargetThread)? {
      let process = try TargetProcess.live(process)
      let thread = process.threads.first { $0.name == "in-mutex" }
      return thread.flatMap {
        $0.state == "S" && $0.call?.number == Processor.here.futex ? (process, $0) : nil
      }
    }
    var found = try waiter()
    while found == nil { found = try waiter() }
    let (target, thread) = try #require(found)
    let info = ThreadInfo(id: thread.id, thread: thread)
    #expect(info.isStillAsleep(in: target))
    // Wakes each thread up, and lets it go on with the same system call.
    kill(process, SIGSTOP)
    while try TargetProcess.live(process).threads.contains(where: { $0.state != "T" }) { sched_yield() }
    kill(process, SIGCONT)
    while try waiter() == nil { sched_yield() }
    #expect(try waiter()?.thread.call?.arguments == thread.call?.arguments)
    #expect(!info.isStillAsleep(in: target))
  }
}

/// Some words of 32 bits, and nothing else.
private final class WordMemory: TargetMemory {
  private let start: UInt64
  private let contents: [UInt8]

  init(_ start: UInt64, _ words: [UInt32]) {
    self.start = start
    contents = words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
  }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    guard address >= start, case let place = Int(address - start), place + bytes.count <= contents.count
    else {
      return false
    }
    bytes.copyBytes(from: contents[place..<place + bytes.count])
    return true
  }
  func populated(_ region: MappedRegion) -> [Range<UInt64>] { [] }
}
