import Concourse
import Glibc
import TestSupport
import Testing

@testable import GooglyPuffKit

/// The whole program, tested over sockets. Serialized, because each test loads all processors.
@Suite(
  .serialized,
  .enabled(if: Picture.obstacle == nil, "needs OpenCV: apt-get install libopencv-dev opencv-data pkg-config"))
struct ProgramTests {
  private let app: RunningApp

  init() throws { app = try RunningApp() }

  private func send(_ bytes: [UInt8], as id: Int) throws -> Answer {
    try request("POST", "/photos/\(id)", port: app.port, bytes)
  }

  @Test func theMainQueueStaysFreeWhileAHundredPhotosComeIn() throws {
    let page = try ListeningPage(app, name: "hundred")
    let server = try MischiefServer(photo: sample("astronaut"))
    defer { server.stop() }
    let downloads = try app.begin(
      "/downloads", ["urls": (0..<50).map { "\(server.address)/\($0 % 2 == 0 ? "photo" : "redirect")" }])
    let uploads = try app.begin("/batches", ["names": (0..<50).map(String.init)], page: "hundred")
    let photo = try sample("grace-hopper")
    let sent = Collected<Int>()
    DispatchQueue.concurrentPerform(iterations: uploads.count) { index in
      if let answer = try? send(photo, as: uploads[index]) { sent.append(answer.status) }
    }
    #expect(sent.all == [Int](repeating: 204, count: 50))
    for id in downloads + uploads {
      try #require(page.first("photo", "\"id\":\(id),\"name\":") != nil)
    }
    // Detection runs at the same time.
    for id in uploads.prefix(5) { _ = try request("POST", "/photos/\(id)/open", port: app.port) }
    for batch in ["\"batch\":1,", "\"batch\":2,"] {
      let notice = try #require(page.first("notice", batch))
      #expect(notice.data.contains("\"arrived\":50,"))
      #expect(notice.data.contains("\"failures\":[]"))
    }
    let statistics = try app.statistics()
    #expect(statistics.items >= 200)
    #expect(statistics.longest <= 5_000_000, "\(statistics)")
    print("main queue: \(statistics)")
  }

  @Test func aNoticeComesAfterAllThatItSpeaksOf() throws {
    let page = try ListeningPage(app, name: "mixed")
    let ids = try app.begin(
      "/batches", ["names": ["good", "bomb", "text", "../../gif", "half"]], page: "mixed")
    let good = try sample("astronaut")
    let files: [[UInt8]] = [
      good, png(width: 30_000, height: 30_000), Array("hello".utf8), Array("GIF89a".utf8),
      Array(good[..<9_000]),
    ]
    for (id, file) in zip(ids, files).reversed() { #expect(try send(file, as: id).status == 204) }
    let notice = try page.notice()
    #expect(notice.arrived == 1)
    let reasons = Dictionary(uniqueKeysWithValues: notice.failures.map { ($0.name, $0.reason) })
    #expect(
      reasons == [
        "bomb": PictureError.tooManyPixels(width: 30_000, height: 30_000).message,
        "text": PictureError.notAPicture.message, "gif": PictureError.animated.message,
        "half": PictureError.broken.message,
      ])
    let before = page.all.prefix { $0.name != "notice" }
    #expect(before.count { $0.name == "photo" && !$0.data.contains("\"stage\":\"arriving\"") } == 5)
    // A late upload is refused.
    #expect(try send(good, as: ids[1]).status == 410)
  }

  @Test func eyesAreDrawnWhenAPhotoIsOpened() throws {
    let page = try ListeningPage(app, name: "eyes")
    let id = try app.begin("/batches", ["names": ["me.jpg"]], page: "eyes")[0]
    #expect(try send(sample("astronaut"), as: id).status == 204)
    _ = try page.notice()
    // The photo is available before its eyes.
    let plain = try request("GET", "/photos/\(id)/photo", port: app.port)
    #expect(plain.status == 200)
    // The browser must not show it for a photo of the next run, whose numbers begin at 1 again.
    #expect(plain.head.contains("Cache-Control: no-store"))
    #expect(try request("GET", "/photos/\(id)/googly", port: app.port).status == 404)
    #expect(try request("POST", "/photos/\(id)/open", port: app.port).status == 204)
    #expect(page.first("photo", "\"radius\"") != nil)
    let googly = try request("GET", "/photos/\(id)/googly", port: app.port)
    #expect(try PictureHeader(googly.body).width == 512)
    #expect(googly.body != plain.body)

    #expect(try request("DELETE", "/photos/\(id)", port: app.port).status == 204)
    #expect(page.first("removed") != nil)
    #expect(try request("POST", "/photos/\(id)/open", port: app.port).status == 204)
  }

  @Test func thePromptComesToAnEmptyGalleryAndGoes() throws {
    let start = DispatchTime.now()
    let page = try ListeningPage(app, name: "prompt")
    #expect(page.first("prompt", "true") != nil)
    #expect(start + .seconds(2) <= .now())
    _ = try app.begin("/batches", ["names": ["x"]], page: "prompt")
    #expect(page.first("prompt", "false") != nil)
  }

  @Test func aThousandUploadsAtOnceAllArrive() throws {
    let page = try ListeningPage(app, name: "thousand")
    let photo = try sample("chelsea")
    let ids = try app.begin("/batches", ["names": (0..<1_000).map(String.init)], page: "thousand")
    // All connections are opened and all photos sent before any answer is read.
    let clients = try ids.map { id in
      let client = try Client(port: app.port)
      client.send(
        Client.head("POST", "/photos/\(id)", port: app.port, length: photo.count, "Connection: close\r\n")
          + photo)
      return client
    }
    let statuses = Collected<Int>()
    DispatchQueue.concurrentPerform(iterations: clients.count) { index in
      statuses.append(clients[index].answer().status)
    }
    #expect(statuses.all.count { $0 == 204 } == 1_000)
    let notice = try page.notice()
    #expect(notice.arrived == 1_000)
    #expect(notice.failures.isEmpty)
    // OpenCV and its libraries take 150 MiB; the uploaded files have 28 MB.
    #expect(app.residentBytes < 500 << 20)
    print("after a thousand photos, \(app.residentBytes >> 20) MiB are resident; \(try app.statistics())")
  }

  @Test func oneUploadOfAPhotoIsAccepted() throws {
    let page = try ListeningPage(app, name: "twice")
    let id = try app.begin("/batches", ["names": ["mine"]], page: "twice")[0]
    let photo = try sample("chelsea")
    let clients = try (0..<2).map { _ in try Client(port: app.port) }
    let head = Client.head(
      "POST", "/photos/\(id)", port: app.port, length: photo.count, "Connection: close\r\n")
    for client in clients { client.send(head + photo[..<1_000]) }
    for client in clients { client.send(Array(photo[1_000...])) }
    #expect(clients.map { $0.answer().status }.sorted() == [204, 410])
    #expect(try page.notice().arrived == 1)
  }

  @Test func aNoticeThatWasMissedComesAgain() throws {
    let page = try ListeningPage(app, name: "away")
    let stays = try ListeningPage(app, name: "stays")
    let photo = try sample("chelsea")
    for batch in 1...3 {
      let id = try app.begin("/batches", ["names": ["photo"]], page: "stays")[0]
      if batch > 1 { page.leave() }
      #expect(try send(photo, as: id).status == 204)
      #expect(stays.first("notice", "\"batch\":\(batch),") != nil)
      if batch == 1 { #expect(page.first("notice") != nil) }
    }
    let last = try #require(page.all.last)
    #expect(last.id == "1")
    let again = try ListeningPage(app, name: "away", last: last.id)
    let notices = again.all.filter { $0.name == "notice" }
    #expect(notices.map(\.id) == ["2", "3"])
    #expect(notices.map(\.data) == stays.all.filter { $0.name == "notice" }.suffix(2).map(\.data))
    // A page that is opened anew gets none.
    #expect(try !ListeningPage(app, name: "new").all.contains { $0.name == "notice" })
  }

  @Test func aPageMayClaimAnyLastNotice() throws {
    for last in ["-9223372036854775808", "9223372036854775807", "-1", "x"] {
      let page = try ListeningPage(app, name: "any", last: last)
      #expect(!page.all.contains { $0.name == "notice" })
    }
  }

  @Test func uploadsDoNotWaitForSilentServers() throws {
    let page = try ListeningPage(app, name: "patient")
    let server = try MischiefServer()
    defer { server.stop() }
    _ = try app.begin("/downloads", ["urls": [String](repeating: "\(server.address)/silent", count: 20)])
    let id = try app.begin("/batches", ["names": ["mine"]], page: "patient")[0]
    #expect(try send(sample("chelsea"), as: id).status == 204)
    #expect(try page.notice().arrived == 1)
    #expect(!page.all.contains { $0.data.contains("\"stage\":\"failed\"") })
  }

  @Test func aServerThatSendsWithoutEndDoesNotFillTheMemory() throws {
    let page = try ListeningPage(app, name: "flood")
    let server = try MischiefServer()
    defer { server.stop() }
    let before = app.peakBytes
    _ = try app.begin("/downloads", ["urls": ["\(server.address)/flood"]])
    #expect(try page.notice().failures.map(\.reason) == [Limits.fileTooLarge])
    // The file's limit, twice while the array grows, and what Foundation buffers.
    #expect(app.peakBytes - before < 160 << 20)
    print("peak while a server sent without end: \(before >> 20) to \(app.peakBytes >> 20) MiB")
  }

  /// Pages listen, uploads are in flight and photos are being developed when the signal comes.
  @Test(arguments: [SIGTERM, SIGINT, SIGHUP])
  func aSignalEndsItAndRemovesItsFiles(signal: Int32) throws {
    let pages = try (0..<5).map { try ListeningPage(app, name: "page\($0)") }
    let ids = try app.begin("/batches", ["names": (0..<40).map(String.init)], page: "page0")
    let photo = try sample("grace-hopper")
    let clients = try ids.map { _ in try Client(port: app.port) }
    for (id, client) in zip(ids, clients) {
      // Each second one stops half way.
      let count = id % 2 == 0 ? photo.count : photo.count / 2
      client.send(Client.head("POST", "/photos/\(id)", port: app.port, length: photo.count) + photo[..<count])
    }
    #expect(pages[1].first("photo", "\"stage\":\"ready\"") != nil)
    #expect(app.leftFiles.count == 1)
    #expect(app.end(signal) == 0)
    #expect(app.leftFiles == [])
  }

  @Test func aClientThatGoesAwayDelaysNoOther() throws {
    let page = try ListeningPage(app, name: "stays")
    let gone = try ListeningPage(app, name: "goes")
    let photo = try sample("astronaut")
    let mine = try app.begin("/batches", ["names": ["mine"]], page: "stays")
    let theirs = try app.begin("/batches", ["names": (0..<20).map { "their \($0)" }], page: "goes")
    // More uploads than the turnstile has places break off; the others of that page are never sent.
    for id in theirs.prefix(10) {
      let client = try Client(port: app.port)
      client.send(Client.head("POST", "/photos/\(id)", port: app.port, length: photo.count) + photo[..<5_000])
    }
    gone.leave()
    #expect(try send(photo, as: mine[0]).status == 204)
    #expect(page.first("notice", "\"arrived\":1,") != nil)
    // The batch of the closed page ends too.
    let notice = try #require(page.first("notice", "\"arrived\":0,"))
    #expect(notice.data.contains("the connection broke off"))
    #expect(notice.data.contains("the page was closed before the upload was complete"))
    #expect(notice.data.split(separator: "\"reason\"").count == 21)
  }

  @Test func unknownPathsAreRefused() throws {
    for path in ["/", "/style.css", "/gallery.js", "/samples/chelsea.jpg", "/internet"] {
      #expect(try request("GET", path, port: app.port).status == 200, "\(path)")
    }
    for path in [
      "/..%2f..%2fetc/passwd", "/samples/..%2findex.html", "/samples/../index.html", "/photos/1", "/x",
    ] {
      #expect(try [404, 405].contains(request("GET", path, port: app.port).status), "\(path)")
    }
    #expect(try request("GET", "/photos/..%2f1/photo", port: app.port).status == 404)
    #expect(try request("POST", "/photos/999", port: app.port, [1]).status == 410)
    #expect(try request("POST", "/batches", port: app.port, Array("{]".utf8)).status == 400)
    let names = "[" + [String](repeating: "\"x\"", count: 2_001).joined(separator: ",") + "]"
    let tooMany = try request(
      "POST", "/batches", port: app.port, Array("{\"page\":\"x\",\"names\":\(names)}".utf8))
    #expect(tooMany.status == 507 && tooMany.text.contains("2000"))
  }

  @Test func aMissingTemporaryDirectoryIsNamed() {
    let run = ProgramRun("googlypuff", "--port", "0", prelude: "export TMPDIR=/nonexistent")
    #expect(run.end() == 1)
    #expect(
      run.errorText
        == "googlypuff: cannot make a directory in /nonexistent: No such file or directory\n")
  }

  @Test func onlyThisMachineCanReachIt() throws {
    let file = try #require(fopen("/proc/net/tcp", "r"))
    defer { fclose(file) }
    var table: [UInt8] = []
    while case let byte = fgetc(file), byte != EOF { table.append(UInt8(truncatingIfNeeded: byte)) }
    let digits = String(app.port, radix: 16, uppercase: true)
    let port = ":" + String(repeating: "0", count: 4 - digits.count) + digits
    // Local address, remote address, state; 0A is LISTEN.
    var listeners: [Substring] = []
    for line in String(decoding: table, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      if words.count > 3, words[1].hasSuffix(port), words[3] == "0A" { listeners.append(words[1]) }
    }
    #expect(listeners == [Substring("0100007F" + port)])
  }

  @Test func otherPagesMayNotUseIt() throws {
    #expect(
      try request("GET", "/internet", port: app.port, [], "Origin: http://evil.example\r\n").status == 403)
    #expect(
      try request("GET", "/internet", port: app.port, [], "Origin: http://127.0.0.1:\(app.port)\r\n").status
        == 200)
    let client = try Client(port: app.port)
    client.send(Array("GET /internet HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".utf8))
    #expect(client.answer().status == 403)
  }

  @Test func aFileThatIsTooLargeIsRefusedUnread() throws {
    let page = try ListeningPage(app, name: "large")
    let id = try app.begin("/batches", ["names": ["large"]], page: "large")[0]
    let client = try Client(port: app.port)
    client.send(Client.head("POST", "/photos/\(id)", port: app.port, length: 1 << 40))
    #expect(client.answer().status == 413)
    #expect(try page.notice().failures.map(\.reason) == [Limits.fileTooLarge])
  }

  @Test func requestsOfOneConnectionAreAnsweredInTurn() throws {
    let client = try Client(port: app.port)
    let one = Client.head("GET", "/icon.svg", port: app.port)
    client.send(
      [UInt8]((0..<200).flatMap { _ in one })
        + Client.head("GET", "/x", port: app.port, "Connection: close\r\n"))
    let text = String(decoding: client.answer().body, as: UTF8.self)
    #expect(text.split(separator: "HTTP/1.1 200 OK").count == 200)
    #expect(text.hasSuffix("{\"error\":\"not found\"}"))
  }
}

/// Without OpenCV the program prints only what to install.
@Suite(.enabled(if: Picture.obstacle != nil, "OpenCV is here"))
struct ProgramWithoutOpenCVTests {
  @Test func oneLineSaysWhatToInstall() throws {
    let run = ProgramRun("googlypuff")
    #expect(run.end() == 1)
    #expect(run.errorText == "googlypuff: \(Picture.obstacle ?? "")\n" && run.outputText.isEmpty)
    #expect(Picture.obstacle?.contains("apt-get install libopencv-dev opencv-data pkg-config") ?? false)
  }
}
