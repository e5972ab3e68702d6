import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// A path may lead to a server that does not answer: then inotify_add_watch does not return.
  @Suite("Watches on their way into the kernel", .serialized)
  struct InotifyHubTests {
    /// A file, watched by a source.
    private static func watch(_ descriptor: Int32, hub: InotifyHub) throws -> WatchedSource {
      let backend = try FileSystemBackend.make(
        descriptor: descriptor, mask: .all, hub: hub, pause: 40_000_000
      ).get()
      return WatchedSource(
        DispatchSource(
          SourceCore(
            kind: .fileSystemObject, handle: UInt(descriptor), mask: FileSystemEvent.all.rawValue,
            merging: .or, target: nil, backend: backend)))
    }

    /// Holds the next call of inotify_add_watch, and only that one.
    private final class Held: Sendable {
      private let isTaken = Shared(false)
      private let came = DispatchSemaphore(value: 0)
      private let mayGo = DispatchSemaphore(value: 0)

      enum Side { case beforeCall, afterCall }

      init(_ side: Side) {
        SystemScript.redirect(.inotifyAdd) { [self] call in
          var isFirst = false
          isTaken.change { (isFirst, $0) = (!$0, true) }
          guard isFirst else { return call() }
          let early = side == .afterCall ? call() : 0
          came.signal()
          mayGo.wait()
          return side == .afterCall ? early : call()
        }
      }

      func comes() -> Bool { ConcourseRuntimeTests.comes(came) }
      func letGo() { mayGo.signal() }
    }

    /// A source that a thread of its own is about to activate.
    private final class Late: @unchecked Sendable {
      // SAFETY: `source` is written before `isActive` is signalled, and read after.
      private var source: WatchedSource?
      private let isActive = DispatchSemaphore(value: 0)

      init(_ descriptor: Int32, hub: InotifyHub) {
        startThread { [self] in
          source = try? watch(descriptor, hub: hub)
          isActive.signal()
        }
      }

      func watched() throws -> WatchedSource {
        #expect(comes(isActive))
        return try #require(source)
      }
    }

    @Test("S114 a watch that the kernel does not return holds up no other file, source or watch")
    func hangingCall() throws {
      defer { SystemScript.clear() }
      let directory = TemporaryDirectory()
      let files = ["one", "two", "three", "slow"].map { directory.open($0) }
      defer { for file in files { close(file) } }
      let hub = InotifyHub()
      defer { hub.close() }
      let one = try Self.watch(files[0], hub: hub)
      let two = try Self.watch(files[1], hub: hub)
      let held = Held(.beforeCall)
      let late = Late(files[3], hub: hub)
      #expect(held.comes())
      one.expects([FileSystemEvent.write, .extend]) { write(files[0], "text", 4) }
      two.cancel()
      let three = try Self.watch(files[2], hub: hub)
      three.expects([FileSystemEvent.write, .extend]) { write(files[2], "text", 4) }
      #expect(hub.watchCount == 2)
      held.letGo()
      try late.watched().expects([FileSystemEvent.write, .extend]) { write(files[3], "text", 4) }
      #expect(hub.watchCount == 3)
    }

    @Test("S114 a file's last watch is removed while another for the same file returns from the kernel")
    func removedMeanwhile() throws {
      defer { SystemScript.clear() }
      let directory = TemporaryDirectory()
      let file = directory.open("file")
      defer { close(file) }
      let hub = InotifyHub()
      defer { hub.close() }
      let former = try Self.watch(file, hub: hub)
      let held = Held(.afterCall)
      let late = Late(file, hub: hub)
      #expect(held.comes())
      former.cancel()
      held.letGo()
      let watched = try late.watched()
      #expect(hub.watchCount == 1)
      watched.expects([FileSystemEvent.write, .extend]) { write(file, "text", 4) }
      watched.cancel()
      #expect(hub.watchCount == 0)
    }

    @Test("S114 the kernel drops a watch before the hub knows its number")
    func droppedMeanwhile() throws {
      defer { SystemScript.clear() }
      let directory = TemporaryDirectory()
      let (file, other) = (directory.open("file"), directory.open("other"))
      defer { for file in [file, other] { close(file) } }
      let hub = InotifyHub()
      defer { hub.close() }
      let witness = try Self.watch(other, hub: hub)
      let held = Held(.afterCall)
      let late = Late(file, hub: hub)
      #expect(held.comes())
      unlink(directory.file("file"))
      // The kernel keeps the order of its notices: the hub has read those of the first file, too.
      witness.expects([FileSystemEvent.write, .extend]) { write(other, "text", 4) }
      held.letGo()
      let watched = try late.watched()
      #expect(watched.reports.comes(FileSystemEvent.delete.rawValue))
      watched.expects([FileSystemEvent.write, .extend], afterwards: .attrib) { write(file, "ghost", 5) }
    }
  }
}
