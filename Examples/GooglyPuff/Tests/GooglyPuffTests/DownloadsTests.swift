import Concourse
import Testing

@testable import GooglyPuffKit

/// URLSession on Concourse, against a misbehaving server.
@Suite(.serialized) struct DownloadsTests {
  /// The reason why each download failed, or "" if it succeeded.
  private func fetch(_ urls: [String], patience: Int = 60, longest: Int = 120) throws -> [String] {
    let listeners = DispatchQueue(label: "test.listeners")
    let manager = PhotoManager(listeners: listeners)
    let store = try PictureStore()
    defer { store.close() }
    let downloads = Downloads(
      manager: manager, darkroom: Darkroom(manager: manager, store: store), turnstile: Turnstile(places: 4),
      patience: patience, longest: longest)
    defer { downloads.close() }
    let group = DispatchGroup()
    let photos = try #require(manager.expect(urls, batch: 1, group: group))
    for (photo, url) in zip(photos, urls) { downloads.fetch(url, as: photo.id) }
    try #require(group.wait(timeout: .now() + .seconds(120)) == .success, "a download never ended")
    return manager.photos.map { $0.reason ?? "" }
  }

  @Test func eachFailureIsSaidInWords() throws {
    let server = try MischiefServer()
    defer { server.stop() }
    let cases = [
      ("404", "the server answered 404 (Not Found)"),
      ("500", "the server answered 500 (Internal Server Error)"),
      ("text", PictureError.notAPicture.message), ("empty", PictureError.notAPicture.message),
      ("redirect-to-text", PictureError.notAPicture.message),
      ("loop", "too many redirects"),
      ("redirect-to-file", "the server answered 404 (Not Found)"),
      ("huge", Limits.fileTooLarge), ("endless", Limits.fileTooLarge),
    ]
    let reasons = try fetch(cases.map { "\(server.address)/\($0.0)" })
    for ((name, expected), reason) in zip(cases, reasons) { #expect(reason == expected, "\(name)") }
  }

  @Test func whatBreaksOffFails() throws {
    let server = try MischiefServer()
    defer { server.stop() }
    for reason in try fetch(["break", "rubbish", "hang-up"].map { "\(server.address)/\($0)" }) {
      #expect(!reason.isEmpty)
      #expect(reason != PictureError.notAPicture.message, "what came was taken for the whole")
    }
  }

  @Test func aPasswordIsNotWaitedFor() throws {
    let server = try MischiefServer()
    defer { server.stop() }
    #expect(
      try fetch(["\(server.address)/401"], patience: 600, longest: 600) == [
        "the server answered 401 (Unauthorized)"
      ])
  }

  @Test func aServerThatIsSilentCostsPatienceOnly() throws {
    let server = try MischiefServer()
    defer { server.stop() }
    #expect(try fetch(["\(server.address)/silent"], patience: 1) == ["the server took too long"])
  }

  @Test func aServerThatIsSlowLosesItsPlace() throws {
    let server = try MischiefServer()
    defer { server.stop() }
    #expect(try fetch(["\(server.address)/trickle"], longest: 1) == ["the server took too long"])
  }

  @Test func aSchemeMayBeInUpperCase() throws {
    let server = try MischiefServer()
    defer { server.stop() }
    let address = server.address.replacing("http", with: "HTTP")
    #expect(
      try fetch(["\(address)/text", "\(address)/redirect-to-upper-case"]) == [
        PictureError.notAPicture.message, PictureError.notAPicture.message,
      ])
  }

  @Test func onlyAddressesOfTheWebAreFetched() throws {
    let reasons = try fetch([
      "file:///etc/passwd", "data:image/png;base64,xx", "ftp://127.0.0.1/x", "nonsense", "http://",
    ])
    #expect(Set(reasons) == ["not an address of the web (http:// or https://)"])
  }

  @Test func aClosedPortIsSaidToBeOne() throws {
    let server = try MischiefServer()
    server.stop()
    #expect(try fetch(["\(server.address)/text"]) == ["the server cannot be reached"])
  }

  @Test func aRemovedPhotoEndsItsDownload() throws {
    let server = try MischiefServer()
    defer { server.stop() }
    let manager = PhotoManager(listeners: DispatchQueue(label: "test.listeners"))
    let store = try PictureStore()
    defer { store.close() }
    let turnstile = Turnstile(places: 1)
    let downloads = Downloads(
      manager: manager, darkroom: Darkroom(manager: manager, store: store), turnstile: turnstile,
      patience: 600)
    defer { downloads.close() }
    let group = DispatchGroup()
    let photo = try #require(manager.expect(["silent"], batch: 1, group: group)?.first)
    downloads.fetch("\(server.address)/silent", as: photo.id)
    manager.remove(photo.id)
    #expect(group.wait(timeout: .now() + .seconds(120)) == .success)
    // Its place is free again although the server never answers.
    let free = DispatchSemaphore(value: 0)
    turnstile.enter { _ in free.signal() }
    #expect(free.comes())
  }
}
