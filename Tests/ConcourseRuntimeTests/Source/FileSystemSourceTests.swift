import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

typealias FileSystemEvent = DispatchSource.FileSystemEvent

extension Engine {
  @Suite("File-system object sources")
  struct FileSystemSourceTests {
    /// How files are observed: through notices, or by polling because a call was refused.
    enum Road: CaseIterable {
      case notices, noWatchesLeft, noProc, noDescriptorsLeft

      func prepare() {
        switch self {
        case .notices: break
        case .noWatchesLeft: SystemScript.refuse(.inotifyAdd, with: ENOSPC)
        case .noProc: SystemScript.refuse(.inotifyAdd, with: ENOENT)
        case .noDescriptorsLeft: SystemScript.refuse(.inotifyCreate, with: EMFILE)
        }
      }
    }

    @Test("S114, trap 19: what happens to a file is reported, bit by bit", arguments: Road.allCases)
    func file(road: Road) throws {
      defer { SystemScript.clear() }
      road.prepare()
      let directory = TemporaryDirectory()
      let file = directory.open("file")
      defer { close(file) }
      let hub = InotifyHub()
      defer { hub.close() }
      let watched = try WatchedSource.onFile(file, hub: hub)
      watched.expects([FileSystemEvent.write, .extend]) { write(file, "twelve bytes", 12) }
      watched.expects(FileSystemEvent.write) { pwrite(file, "TWELVE", 6, 0) }
      watched.expects(FileSystemEvent.write) { truncate(directory.file("file"), 3) }
      watched.expects([FileSystemEvent.write, .extend]) { ftruncate(file, 100) }
      watched.expects(FileSystemEvent.attrib) { fchmod(file, 0o640) }
      watched.expects(FileSystemEvent.link) { link(directory.file("file"), directory.file("second")) }
      watched.expects(FileSystemEvent.link) { unlink(directory.file("second")) }
      watched.expects(FileSystemEvent.rename) { rename(directory.file("file"), directory.file("moved")) }
      // The rename triggers a comparison, which may find the lost name before its notice does.
      watched.expects([FileSystemEvent.delete, .link], afterwards: .attrib) {
        unlink(directory.file("moved"))
      }
      watched.expects([FileSystemEvent.write, .extend], afterwards: .attrib) { pwrite(file, "ghost", 5, 200) }
    }

    @Test("S114 what happens to a file in memory, for which the kernel reports no writes")
    func memory() throws {
      let file = memoryFile()
      defer { close(file) }
      let watched = try WatchedSource.onFile(file)
      watched.expects([FileSystemEvent.write, .extend]) { write(file, "twelve bytes", 12) }
      watched.expects(FileSystemEvent.write) { pwrite(file, "TWELVE", 6, 0) }
      watched.expects(FileSystemEvent.attrib) { fchmod(file, 0o640) }
    }

    @Test("S114, trap 19: what happens to a directory is reported", arguments: Road.allCases)
    func directory(road: Road) throws {
      defer { SystemScript.clear() }
      road.prepare()
      let directory = TemporaryDirectory()
      let descriptor = directory.openDirectory("inner")
      defer { close(descriptor) }
      mkdir(directory.file("other"), 0o700)
      let hub = InotifyHub()
      defer { hub.close() }
      let watched = try WatchedSource.onFile(descriptor, hub: hub)
      let file = directory.file("inner/file")
      watched.expects(FileSystemEvent.write) { close(open(file, O_CREAT | O_WRONLY, 0o600)) }
      watched.expects(FileSystemEvent.write) { rename(file, directory.file("inner/moved")) }
      watched.expects(FileSystemEvent.write) { unlink(directory.file("inner/moved")) }
      watched.expects([FileSystemEvent.write, .link]) { mkdir(directory.file("inner/sub"), 0o700) }
      watched.expects([FileSystemEvent.write, .link]) { rmdir(directory.file("inner/sub")) }
      // A look in the middle of the removal may find it before its notice does.
      watched.expects(FileSystemEvent.attrib, afterwards: [.write, .link]) { fchmod(descriptor, 0o750) }
      let moved = directory.file("other/inner")
      watched.expects(FileSystemEvent.rename) { rename(directory.file("inner"), moved) }
      watched.reports.forget()
      rmdir(moved)
      #expect(watched.reports.comes(FileSystemEvent.delete.rawValue))
    }

    @Test("S114 a directory that is moved and then removed, before and after the move is noticed")
    func movedAndRemoved() throws {
      let directory = TemporaryDirectory()
      mkdir(directory.file("other"), 0o700)
      for round in 0..<200 {
        let descriptor = directory.openDirectory("inner")
        defer { close(descriptor) }
        let watched = try WatchedSource.onFile(descriptor, [.delete, .rename])
        rename(directory.file("inner"), directory.file("other/inner"))
        if round.isMultiple(of: 2) { #expect(watched.reports.comes(FileSystemEvent.rename.rawValue)) }
        rmdir(directory.file("other/inner"))
        #expect(watched.reports.comes(FileSystemEvent([.delete, .rename]).rawValue))
      }
    }

    @Test("S114 a change inside an entry is not a change of the directory")
    func changeOfEntry() throws {
      let directory = TemporaryDirectory()
      let descriptor = directory.openDirectory("inner")
      let file = directory.open("inner/file")
      defer {
        close(descriptor)
        close(file)
      }
      let watched = try WatchedSource.onFile(descriptor)
      write(file, "text", 4)
      fchmod(file, 0o640)
      watched.expects(FileSystemEvent.rename) { rename(directory.file("inner"), directory.file("outer")) }
      #expect(watched.reports.all.count == 1)
    }

    @Test("S114 a file that loses its last name to a renamed one is deleted")
    func replaced() throws {
      let directory = TemporaryDirectory()
      let file = directory.open("file")
      defer { close(file) }
      close(directory.open("new"))
      let watched = try WatchedSource.onFile(file)
      watched.expects([FileSystemEvent.delete, .link]) {
        rename(directory.file("new"), directory.file("file"))
      }
    }

    @Test("S114 a file with several names, of which the one used to open it is removed first")
    func names() throws {
      let directory = TemporaryDirectory()
      let file = directory.open("first")
      defer { close(file) }
      link(directory.file("first"), directory.file("second"))
      let hub = InotifyHub()
      defer { hub.close() }
      let watched = try WatchedSource.onFile(file, hub: hub)
      watched.expects(FileSystemEvent.link) { unlink(directory.file("first")) }
      // The kernel drops its watch here. Another could be lost without notice, so the backend polls.
      watched.expects([FileSystemEvent.delete, .link]) { unlink(directory.file("second")) }
      watched.expects([FileSystemEvent.write, .extend]) { write(file, "on", 2) }
      watched.expects(FileSystemEvent.attrib) { fchmod(file, 0o644) }
      #expect(hub.watchCount == 0)
    }

    @Test("S114 only the requested events are reported")
    func mask() throws {
      let directory = TemporaryDirectory()
      let file = directory.open("file")
      defer { close(file) }
      let watched = try WatchedSource.onFile(file, .delete)
      write(file, "text", 4)
      fchmod(file, 0o640)
      rename(directory.file("file"), directory.file("moved"))
      watched.expects(FileSystemEvent.delete) { unlink(directory.file("moved")) }
      #expect(watched.reports.all.count == 1)
    }

    @Test("S111, S114 several sources share the kernel's one watch of a file, and end independently")
    func sharing() throws {
      let hub = InotifyHub()
      defer { hub.close() }
      let directory = TemporaryDirectory()
      let file = directory.open("file")
      let again = directory.open("file")
      defer {
        close(file)
        close(again)
      }
      let first = try WatchedSource.onFile(file, hub: hub)
      let second = try WatchedSource.onFile(again, [.write, .attrib], hub: hub)
      #expect(hub.watchCount == 1)
      write(file, "text", 4)
      #expect(first.reports.comes(FileSystemEvent.write.rawValue))
      #expect(second.reports.comes(FileSystemEvent.write.rawValue))
      first.cancel()
      #expect(hub.watchCount == 1)
      second.expects(FileSystemEvent.attrib) { fchmod(file, 0o640) }
      second.cancel()
      #expect(hub.watchCount == 0)
      let third = try WatchedSource.onFile(file, hub: hub)
      third.expects([FileSystemEvent.write, .extend]) { write(file, "text", 4) }
    }

    @Test("S114 after lost notices every source compares")
    func lostNotices() throws {
      let hub = InotifyHub()
      defer { hub.close() }
      let directory = TemporaryDirectory()
      let file = directory.open("file")
      defer { close(file) }
      let watched = try WatchedSource.onFile(file, hub: hub)
      watched.expects([FileSystemEvent.write, .attrib]) {
        var notice = inotify_event()
        notice.wd = -1
        notice.mask = UInt32(IN_Q_OVERFLOW)
        // SAFETY: the notice is alive in the closure and has this size.
        withUnsafeBytes(of: &notice) { hub.deliver(UnsafeRawBufferPointer(rebasing: $0.prefix(16))) }
      }
    }

    @Test(
      "S104, trap 6: a source on a closed descriptor registers, is silent, and can be cancelled"
    )
    func closedDescriptor() throws {
      let directory = TemporaryDirectory()
      let file = directory.open("file")
      // Far above the numbers that other tests may open meanwhile.
      let number = fcntl(file, F_DUPFD_CLOEXEC, 700)
      close(file)
      close(number)
      let source = DispatchSource.makeFileSystemObjectSource(fileDescriptor: number, eventMask: .all)
      let registered = DispatchSemaphore(value: 0)
      let cancelled = DispatchSemaphore(value: 0)
      source.setRegistrationHandler { registered.signal() }
      source.setCancelHandler { cancelled.signal() }
      source.setEventHandler { Issue.record("an event of a file that is not open") }
      source.activate()
      #expect(comes(registered))
      source.cancel()
      #expect(comes(cancelled))
    }

    @Test("S103 handle, mask and data of a file-system object source have their types")
    func members() {
      let directory = TemporaryDirectory()
      let file = directory.open("file")
      let source = DispatchSource.makeFileSystemObjectSource(
        fileDescriptor: file, eventMask: [.write, .delete])
      let handle: Int32 = source.handle
      let mask: FileSystemEvent = source.mask
      #expect(handle == file)
      #expect(mask == [.write, .delete])
      let told = Shared<FileSystemEvent>([])
      let came = DispatchSemaphore(value: 0)
      let closed = DispatchSemaphore(value: 0)
      source.setEventHandler { [unowned source = source as! DispatchSource] in
        told.change { $0 = (source as any DispatchSourceFileSystemObject).data }
        came.signal()
      }
      source.setCancelHandler {
        close(file)
        closed.signal()
      }
      source.activate()
      write(file, "text", 4)
      #expect(comes(came))
      #expect(told.value == .write)
      source.cancel()
      #expect((source.mask as FileSystemEvent).isEmpty)
      #expect(comes(closed))
    }

    @Test("S95 file events that cannot be observed are refused, with the reason")
    func refusals() {
      func reason(_ descriptor: Int32, _ mask: FileSystemEvent) -> String {
        switch DispatchSource.makeFileSystemObject(descriptor, mask, nil) {
        case .success: "made"
        case .failure(let refusal): refusal.message
        }
      }
      #expect(reason(-1, .write).contains("must not be negative"))
      #expect(reason(0, []).contains("empty event mask"))
      let event = Int32(System.createEvent())
      defer { close(event) }
      #expect(
        reason(event, .write).contains("the descriptor is that of an eventfd or the like, not of a file"))
      #expect(reason(0, [.write, .funlock]).contains("asks for .funlock, which cannot be observed"))
      #expect(reason(0, .init(rawValue: 0x82)).contains("0x80 mean nothing"))
      #expect(FileSystemEvent.observable == .all)
      #expect(!FileSystemEvent.observable.contains(.funlock))
    }
  }
}

@Suite("FileObservation")
struct FileObservationTests {
  private func status(_ change: (inout FileStatus) -> Void = { _ in }) -> FileStatus {
    var status = FileStatus()
    (status.size, status.links, status.mode) = (10, 1, 0o100600)
    change(&status)
    return status
  }

  @Test("Each notice finds its own differences, however late it is handled")
  func sidesAreApart() {
    var observation = FileObservation(status())
    // Written to, and linked: both notices see the same status.
    let now = status { ($0.size, $0.links) = (20, 2) }
    #expect(observation.contentChanged(now) == [.write, .extend])
    #expect(observation.attributesChanged(now) == .link)
    #expect(observation.attributesChanged(now) == .attrib)
  }

  @Test("One notice for two changes of attributes")
  func mergedNotice() {
    var observation = FileObservation(status())
    #expect(
      observation.attributesChanged(status { ($0.mode, $0.links) = (0o100640, 2) }) == [.attrib, .link])
  }

  @Test("The deletion is reported once, by the first notice")
  func deletion() {
    var first = FileObservation(status())
    #expect(first.attributesChanged(status { $0.links = 0 }) == [.delete, .link])
    #expect(first.deleted() == [])
    var second = FileObservation(status())
    #expect(second.deleted() == [.delete, .link])
    #expect(second.linksChanged(status { $0.links = 0 }) == [])
  }

  @Test("A comparison finds everything, and then nothing")
  func comparison() {
    var observation = FileObservation(status { $0.path = Array("/a".utf8) })
    let now = status {
      ($0.size, $0.links, $0.mode, $0.modified, $0.changed) = (5, 2, 0o100640, 1, 1)
      $0.path = Array("/b".utf8)
    }
    #expect(observation.compare(now) == [.write, .link, .attrib, .rename])
    #expect(observation.compare(now) == [])
    var later = now
    later.changed = 2
    #expect(observation.compare(later) == .attrib)
    later.path = Array("/b (deleted)".utf8)
    later.links = 1
    #expect(observation.compare(later) == .link)
  }

  @Test("Where the path cannot be read, a change that nothing explains may be a rename")
  func unnamed() {
    var observation = FileObservation(status())
    var now = status { ($0.changed, $0.isUnnamed) = (1, true) }
    #expect(observation.compare(now) == [.attrib, .rename])
    #expect(observation.compare(now) == [])
    // Content, attributes and links explain a new change time.
    (now.size, now.modified, now.changed) = (15, 2, 2)
    #expect(observation.compare(now) == [.write, .extend])
    (now.mode, now.changed) = (0o100640, 3)
    #expect(observation.compare(now) == .attrib)
    (now.links, now.changed) = (2, 4)
    #expect(observation.compare(now) == .link)
    // A write, and a rename after it.
    (now.size, now.modified, now.changed) = (16, 5, 6)
    #expect(observation.compare(now) == [.write, .extend, .rename])
  }

  @Test("Changes without a notice are found, and no attribute changes are invented")
  func overlooked() {
    var observation = FileObservation(status())
    #expect(observation.compareContent(status { $0.changed = 7 }) == [])
    #expect(
      observation.compareContent(status { ($0.modified, $0.links) = (1, 0) }) == [.write, .link, .delete])
    #expect(observation.compareContent(status { ($0.modified, $0.links) = (1, 0) }) == [])
  }

  @Test("A directory does not become longer, and its subdirectories count as links")
  func directories() {
    var observation = FileObservation(status { ($0.isDirectory, $0.links) = (true, 2) })
    let grown = status { ($0.isDirectory, $0.links, $0.size) = (true, 3, 50) }
    #expect(observation.entriesChanged(grown, isDirectory: true) == [.write, .link])
    #expect(observation.entriesChanged(grown, isDirectory: false) == .write)
    // A file system that does not count subdirectories.
    #expect(observation.entriesChanged(grown, isDirectory: true) == [.write, .link])
  }
}
