import Concourse
import Synchronization
import Testing

@testable import GooglyPuffKit

@Suite struct PhotoManagerTests {
  private let listeners = DispatchQueue(label: "test.listeners")
  private let group = DispatchGroup()

  /// A manager whose changes are collected on `listeners`.
  private func manager(capacity: Int = 100) -> (PhotoManager, Collected<PhotoManager.Change>) {
    let manager = PhotoManager(capacity: capacity, listeners: listeners)
    let changes = Collected<PhotoManager.Change>()
    manager.whenChanged { changes.append($0) }
    return (manager, changes)
  }

  @Test func changesAreReportedInOrder() throws {
    let (manager, changes) = manager()
    let photos = try #require(manager.expect(["a", "b"], batch: 1, group: group))
    manager.ready(photos[0].id, width: 3, height: 2)
    manager.fail(photos[1].id, "broken")
    manager.forgetFailures(of: 1)
    manager.remove(photos[0].id)
    #expect(manager.photos.isEmpty)
    listeners.sync {}
    let told = changes.all.map { change in
      switch change {
      case .updated(let photo): "\(photo.name) \(photo.stage)"
      case .removed(let photo): "\(photo.name) removed"
      }
    }
    #expect(
      told == ["a arriving", "b arriving", "a ready", "b failed", "b removed", "a removed"])
  }

  @Test func aGroupIsLeftAfterTheLastChangeWasTold() throws {
    // Many threads settle and remove photos. When the group notifies, every change must have been reported.
    for round in 0..<50 {
      let (manager, changes) = manager()
      let group = DispatchGroup()
      let photos = try #require(manager.expect((0..<30).map(String.init), batch: round, group: group))
      let settledAtNotice = Collected<Int>()
      let noticed = DispatchSemaphore(value: 0)
      group.notify(queue: listeners) {
        settledAtNotice.append(
          changes.all.count { change in
            switch change {
            case .updated(let photo): photo.stage != .arriving
            case .removed(let photo): photo.stage == .arriving
            }
          })
        noticed.signal()
      }
      DispatchQueue.concurrentPerform(iterations: photos.count) { index in
        let id = photos[index].id
        switch index % 3 {
        case 0: manager.ready(id, width: 1, height: 1)
        case 1: manager.fail(id, "no")
        default: manager.remove(id)
        }
        // Too late: a photo is settled only once.
        manager.fail(id, "again")
      }
      #expect(noticed.comes())
      #expect(settledAtNotice.all == [30])
    }
  }

  @Test func readersSeeWholeBatchesWhileOthersWrite() {
    let (manager, _) = manager(capacity: 10_000)
    let torn = Atomic(0)
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      for round in 0..<50 {
        if thread % 2 == 0 {
          _ = manager.expect(["x", "y", "z"], batch: thread * 50 + round, group: group)
        } else if manager.photos.count % 3 != 0 {
          // ORDERING: relaxed; read after the loop, which orders it.
          torn.add(1, ordering: .relaxed)
        }
      }
    }
    // ORDERING: relaxed; see above.
    #expect(torn.load(ordering: .relaxed) == 0)
    #expect(manager.count == 600)
    for photo in manager.photos { manager.remove(photo.id) }
    #expect(group.wait(timeout: .now() + .seconds(60)) == .success)
  }

  @Test func removalEndsTheWork() throws {
    let (manager, _) = manager()
    let photos = try #require(manager.expect(["early", "late"], batch: 1, group: group))
    let ended = Collected<String>()
    manager.work(on: photos[0].id) { ended.append("early") }
    for photo in photos { manager.remove(photo.id) }
    // The photo is gone already.
    manager.work(on: photos[1].id) { ended.append("late") }
    #expect(manager.count == 0)
    #expect(ended.all == ["early", "late"])
  }

  @Test func aPhotoIsUploadedOnce() throws {
    let (manager, _) = manager()
    let photo = try #require(manager.expect(["one"], batch: 1, group: group)?.first)
    let claims = Collected<Bool>()
    DispatchQueue.concurrentPerform(iterations: 50) { _ in claims.append(manager.claim(photo.id)) }
    #expect(claims.all.count { $0 } == 1)
    manager.fail(photo.id, "broken")
    #expect(!manager.claim(photo.id) && !manager.claim(photo.id + 1))
    #expect(group.wait(timeout: .now() + .seconds(60)) == .success)
  }

  @Test func aFullGalleryTakesNoneOfABatch() throws {
    let (manager, _) = manager(capacity: 3)
    let two = try #require(manager.expect(["a", "b"], batch: 1, group: group))
    #expect(manager.expect(["c", "d"], batch: 2, group: group) == nil)
    #expect(manager.count == 2)
    for photo in two { manager.remove(photo.id) }
    #expect(group.wait(timeout: .now() + .seconds(60)) == .success)
  }

  @Test(arguments: [
    ("holiday.jpg", "holiday.jpg"), ("../../etc/passwd", "passwd"), ("C:\\photos\\me.png", "me.png"),
    ("a\u{202E}gpj.exe\u{0}\n", "agpj.exe"), ("", "photo"), ("..", "photo"), ("///", "photo"),
    ("<b>x</b>.png", "b>.png"), ("Zoë 👀.webp", "Zoë 👀.webp"),
    (String(repeating: "x", count: 500), String(repeating: "x", count: 80)),
  ])
  func namesAreForShowOnly(given: String, shown: String) {
    #expect(Photo.displayName(given) == shown)
  }
}
