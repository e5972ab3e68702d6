import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// Notices that the kernel drops, that come in crowds, or that it never gives.
  @Suite("File-system object sources and missing notices", .serialized)
  struct LostNoticesTests {
    /// A hub whose notices are lost, until the kernel says so.
    private final class DeafHub: Sendable {
      let hub = InotifyHub()
      private let isDeaf = Shared(false)
      private let lost = Tally()

      init() {
        SystemScript.redirect(.read) { [isDeaf, lost] call in
          let result = call()
          guard isDeaf.value, result > 0 else { return result }
          lost.add()
          return -Int(EAGAIN)
        }
      }

      /// Loses the notices of `change`, then reports an overflow.
      func losing(_ change: () -> Void) {
        isDeaf.change { $0 = true }
        let before = lost.value
        change()
        #expect(awaitValue { lost.value > before })
        isDeaf.change { $0 = false }
        var notice = inotify_event()
        notice.wd = -1
        notice.mask = UInt32(IN_Q_OVERFLOW)
        // SAFETY: the notice is alive in the closure and has this size.
        withUnsafeBytes(of: &notice) { hub.deliver(UnsafeRawBufferPointer(rebasing: $0.prefix(16))) }
      }

      func end() {
        hub.close()
        SystemScript.clear()
      }
    }

    @Test("S114 a rename whose notice is lost")
    func lostRename() throws {
      let deaf = DeafHub()
      defer { deaf.end() }
      let directory = TemporaryDirectory()
      let file = directory.open("file")
      defer { close(file) }
      let watched = try WatchedSource.onFile(file, [.rename, .delete], hub: deaf.hub)
      watched.expects(FileSystemEvent.rename) {
        deaf.losing { rename(directory.file("file"), directory.file("moved")) }
      }
      watched.expects(FileSystemEvent.rename) { rename(directory.file("moved"), directory.file("file")) }
      watched.expects(FileSystemEvent.delete) { unlink(directory.file("file")) }
    }

    @Test("S114 a directory whose move is lost is observed in its new place")
    func lostMove() throws {
      let deaf = DeafHub()
      defer { deaf.end() }
      let directory = TemporaryDirectory()
      let inner = directory.openDirectory("inner")
      defer { close(inner) }
      mkdir(directory.file("other"), 0o700)
      let watched = try WatchedSource.onFile(inner, [.rename, .delete], hub: deaf.hub)
      let moved = directory.file("other/inner")
      watched.expects(FileSystemEvent.rename) { deaf.losing { rename(directory.file("inner"), moved) } }
      watched.expects(FileSystemEvent.delete) { rmdir(moved) }
    }

    @Test("S114 a file goes on being observed when the last notice of the kernel's watch is lost")
    func lostWatch() throws {
      let deaf = DeafHub()
      defer { deaf.end() }
      let directory = TemporaryDirectory()
      let file = directory.open("first")
      defer { close(file) }
      link(directory.file("first"), directory.file("second"))
      let watched = try WatchedSource.onFile(file, [.delete, .link, .extend], hub: deaf.hub)
      watched.expects(FileSystemEvent.link) { unlink(directory.file("first")) }
      watched.expects([FileSystemEvent.delete, .link]) { deaf.losing { unlink(directory.file("second")) } }
      watched.expects(FileSystemEvent.extend) { write(file, "ghost", 5) }
    }

    @Test("S109 a file that grows while notices are lost, and that goes on growing without a name")
    func lostGrowth() throws {
      let deaf = DeafHub()
      defer { deaf.end() }
      let directory = TemporaryDirectory()
      let (file, writer) = (directory.open("file"), directory.open("file"))
      defer { for descriptor in [file, writer] { close(descriptor) } }
      let reader = ReadingSource(file, hub: deaf.hub)
      defer { reader.cancel() }
      reader.reports([0])
      #expect(awaitValue { deaf.hub.watchCount == 1 })
      deaf.losing { write(writer, "lost", 4) }
      reader.reports([0, 4, 0])
      write(writer, "seen", 4)
      reader.reports([0, 4, 0, 4, 0])
      unlink(directory.file("file"))
      deaf.losing { write(writer, "ghost", 5) }
      reader.reports([0, 4, 0, 4, 0, 5, 0])
      write(writer, "ghosts", 6)
      reader.reports([0, 4, 0, 4, 0, 5, 0, 6, 0])
    }

    @Test("S114 a crowd of removals beside observed directories")
    func crowd() throws {
      defer { SystemScript.clear() }
      let hub = InotifyHub()
      defer { hub.close() }
      let directory = TemporaryDirectory()
      let (observed, removed) = (10, 20)
      let descriptors = (0..<observed).map { directory.openDirectory("observed\($0)") }
      defer { for descriptor in descriptors { close(descriptor) } }
      for index in 0..<removed {
        mkdir(directory.file("other\(index)"), 0o700)
        close(directory.open("file\(index)"))
      }
      let sources = try descriptors.map { try WatchedSource.onFile($0, .delete, hub: hub) }
      #expect(awaitValue { hub.watchCount == observed + 1 })
      let isHeld = Shared(true)
      SystemScript.redirect(.read) { call in isHeld.value ? -Int(EAGAIN) : call() }
      for index in 0..<removed {
        rmdir(directory.file("other\(index)"))
        unlink(directory.file("file\(index)"))
      }
      let before = SystemScript.count(.status)
      isHeld.change { $0 = false }
      sources[0].expects(FileSystemEvent.delete) { rmdir(directory.file("observed0")) }
      // One look for all of the crowd and one for the last removal, and a few more if the hub reads in parts.
      #expect(SystemScript.count(.status) - before <= 6 * observed)
      for source in sources.dropFirst() { #expect(source.reports.all.isEmpty) }
    }
  }
}
