import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Crash {
  @Suite("Sources of events that cannot be observed")
  struct LinuxSourceCrashTests {
    @Test("S95 a process source for no process, without events, or for signals")
    func processSources() async {
      let none = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeProcessSource(identifier: 0, eventMask: .exit)
      }
      none.says("makeProcessSource(identifier: 0): a process identifier must be positive")
      let nothing = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeProcessSource(identifier: 1, eventMask: [])
      }
      nothing.says(
        "makeProcessSource(identifier: 1) with an empty event mask: it would never report anything")
      let unknown = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeProcessSource(identifier: 1, eventMask: .init(rawValue: 6))
      }
      unknown.says("makeProcessSource(identifier: 1) with event mask 0x6: the bits 0x6 mean nothing")
      let signals = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeProcessSource(identifier: 1, eventMask: [.exit, .signal])
      }
      signals.says(
        "makeProcessSource(identifier: 1) asks for .signal, which cannot be observed here: Linux does not report the signals of another process"
      )
      let forks = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        SystemScript.refuse(.bind, with: EPERM)
        _ = DispatchSource.makeProcessSource(identifier: 1, eventMask: [.exit, .fork, .exec])
      }
      forks.says(
        "makeProcessSource(identifier: 1) asks for .fork, .exec, which cannot be observed here: the kernel refuses its process events to this process (errno 1)"
      )
    }

    @Test("S95 a file-system object source without a descriptor, without events, or for unlocking")
    func fileSystemSources() async {
      let none = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeFileSystemObjectSource(fileDescriptor: -1, eventMask: .write)
      }
      none.says("makeFileSystemObjectSource(fileDescriptor: -1): a descriptor must not be negative")
      let event = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        try #require(dup2(Int32(System.createEvent()), 100) == 100)
        _ = DispatchSource.makeFileSystemObjectSource(fileDescriptor: 100, eventMask: .write)
      }
      event.says(
        "makeFileSystemObjectSource(fileDescriptor: 100): the descriptor is that of an eventfd or the like, not of a file"
      )
      let nothing = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeFileSystemObjectSource(fileDescriptor: 0, eventMask: [])
      }
      nothing.says("makeFileSystemObjectSource(fileDescriptor: 0) with an empty event mask")
      let unlocking = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeFileSystemObjectSource(fileDescriptor: 0, eventMask: [.write, .funlock])
      }
      unlocking.says(
        "makeFileSystemObjectSource(fileDescriptor: 0) asks for .funlock, which cannot be observed here: Linux does not report when a file is unlocked"
      )
    }

    @Test("S95 a memory pressure source without events, or with undefined bits")
    func memoryPressureSources() async {
      let nothing = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeMemoryPressureSource(eventMask: [])
      }
      nothing.says("makeMemoryPressureSource() with an empty event mask")
      let unknown = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSource.makeMemoryPressureSource(eventMask: .init(rawValue: 0x10))
      }
      unknown.says("makeMemoryPressureSource() with event mask 0x10: the bits 0x10 mean nothing")
    }
  }
}
