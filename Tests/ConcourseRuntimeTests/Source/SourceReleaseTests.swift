import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// A source or an operation leaves nothing behind, whatever it observed and however it ended.
  @Suite("Ended sources and operations are freed", .serialized)
  struct SourceReleaseTests {
    /// Counts its deinit.
    private final class Trace: Sendable {
      let ended: DispatchSemaphore
      init(_ ended: DispatchSemaphore) { self.ended = ended }
      deinit { ended.signal() }
    }

    private static let key = DispatchSpecificKey<Trace>()

    /// A queue whose release `ended` counts: the core of a source holds its queue, and a channel its own.
    private static func tracedQueue(_ ended: DispatchSemaphore) -> DispatchQueue {
      let queue = DispatchQueue(label: "traced")
      queue.setSpecific(key: key, value: Trace(ended))
      return queue
    }

    enum Kind: CaseIterable {
      case timer, dueTimer, signal, readable, silent, writable, always, userData, process, zombie
      case file, sampledFile, directory, memory
    }

    enum End: CaseIterable { case cancelled, cancelledByHandler, released }

    /// The resources of one kind of source.
    private final class Surroundings {
      let pipe = Ends.pipe()
      let directory = TemporaryDirectory()
      lazy var file = directory.open("file")
      lazy var folder = directory.openDirectory("folder")
      lazy var child = Child("read line")
      lazy var zombie = Child.zombie()
      let hub = InotifyHub()

      deinit {
        hub.close()
        close(file)
        close(folder)
      }

      func make(_ kind: Kind, _ queue: DispatchQueue) throws -> DispatchSource {
        switch kind {
        case .timer, .dueTimer:
          let timer = DispatchSource.makeTimerSource(queue: queue)
          timer.schedule(deadline: .now() + (kind == .timer ? 3600 : 0), repeating: 3600)
          return timer as! DispatchSource
        case .signal: return DispatchSource.makeSignalSource(signal: 40, queue: queue) as! DispatchSource
        case .readable, .silent:
          if kind == .readable { pipe.send("text") }
          return DispatchSource.makeReadSource(fileDescriptor: pipe.reader, queue: queue) as! DispatchSource
        case .writable:
          return DispatchSource.makeWriteSource(fileDescriptor: pipe.writer, queue: queue) as! DispatchSource
        case .always:
          return DispatchSource.makeWriteSource(fileDescriptor: file, queue: queue) as! DispatchSource
        case .userData: return DispatchSource.makeUserDataAddSource(queue: queue) as! DispatchSource
        case .process: return try DispatchSource.makeProcess(child.identifier, .exit, queue).get()
        case .zombie: return try DispatchSource.makeProcess(zombie.identifier, .exit, queue).get()
        case .file, .sampledFile: return try fileSystemSource(file, queue)
        case .directory: return try fileSystemSource(folder, queue)
        case .memory:
          return DispatchSource.makeMemoryPressureSource(eventMask: .all, queue: queue) as! DispatchSource
        }
      }

      private func fileSystemSource(_ descriptor: Int32, _ queue: DispatchQueue) throws -> DispatchSource {
        let backend = try FileSystemBackend.make(descriptor: descriptor, mask: .all, hub: hub).get()
        return DispatchSource(
          SourceCore(
            kind: .fileSystemObject, handle: UInt(descriptor), mask: 0, merging: .or, target: queue,
            backend: backend))
      }
    }

    /// A weak reference to a backend.
    private struct Remains {
      weak var backend: SourceBackend?
    }

    /// Makes a source and ends it. Keeps no reference to it.
    private static func live(
      _ kind: Kind, _ end: End, in surroundings: Surroundings, _ ended: DispatchSemaphore
    ) throws -> Remains {
      let source = try surroundings.make(kind, tracedQueue(ended))
      let trace = Trace(ended)
      let registered = DispatchSemaphore(value: 0)
      source.setEventHandler { withExtendedLifetime(trace) {} }
      source.setRegistrationHandler {
        // Called once and then dropped, so it no longer keeps the source.
        if end == .cancelledByHandler { source.cancel() }
        registered.signal()
      }
      if kind == .sampledFile { SystemScript.refuse(.inotifyAdd, with: ENOSPC) }
      source.activate()
      SystemScript.clear()
      #expect(comes(registered))
      if end == .cancelled { source.cancel() }
      return Remains(backend: source.core.backend)
    }

    @Test("S101 a source leaves nothing behind", arguments: Kind.allCases, End.allCases)
    func source(_ kind: Kind, _ end: End) throws {
      let ended = DispatchSemaphore(value: 0)
      let surroundings = Surroundings()
      let remains = try Self.live(kind, end, in: surroundings, ended)
      // The handlers' captures, and the core's queue.
      for _ in 0..<2 { #expect(comes(ended)) }
      // A polling thread that is about to notify the backend may keep it for a moment.
      let patient = DispatchTime.now() + patience
      while remains.backend != nil && DispatchTime.now() < patient { Processor.yield() }
      #expect(remains.backend == nil)
      withExtendedLifetime(surroundings) {}
    }

    enum Operation: CaseIterable {
      case ended, stopped, paced, followed, retried, ring
    }

    /// Runs an operation of a channel and ends it. Keeps no reference to it or its channel.
    private static func operate(_ operation: Operation, _ ended: DispatchSemaphore) {
      let pipe = Ends.pipe()
      let file = TemporaryFile(pattern(100_000))
      let channel = DispatchIO(
        type: operation == .ring ? .random : .stream,
        fileDescriptor: operation == .ring ? file.descriptor : pipe.reader, queue: tracedQueue(ended)
      ) { _ in }
      // An hour: the loop would keep anything left for that long.
      if operation == .paced { channel.setInterval(interval: .seconds(3600)) }
      if operation == .followed { channel.setLimit(lowWater: 1) }
      let trace = Trace(ended)
      let done = DispatchSemaphore(value: 0)
      if operation == .retried { SystemScript.refuse(.read, with: EAGAIN, times: 20) }
      pipe.send("some")
      channel.read(offset: 0, length: operation == .ring ? 100_000 : 8, queue: DispatchQueue(label: "calls"))
      {
        isLast, _, _ in
        withExtendedLifetime(trace) { if isLast { done.signal() } }
      }
      if operation == .stopped { channel.close(flags: .stop) } else { pipe.send("more") }
      #expect(comes(done))
      SystemScript.clear()
      channel.close()
    }

    @Test("S128 an operation leaves nothing behind", arguments: Operation.allCases)
    func operation(_ operation: Operation) {
      let ended = DispatchSemaphore(value: 0)
      FilePolicy.with(operation == .ring ? .ring : FilePolicy.current) { Self.operate(operation, ended) }
      // The handler's captures, and the channel's queue.
      for _ in 0..<2 { #expect(comes(ended)) }
    }
  }
}
