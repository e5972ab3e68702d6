import ExampleSupport
import FoundationEssentials
import Testing

@testable import GooglyPuffKit

@Suite struct ArrivalTests {
  @Test func aTurnstileBoundsItsWorkAndServesAll() {
    let turnstile = Turnstile(places: 3)
    let inside = Collected<Turnstile.Turn>()
    let entered = DispatchSemaphore(value: 0)
    for _ in 0..<500 {
      turnstile.enter { turn in
        inside.append(turn)
        entered.signal()
      }
    }
    for _ in 1...3 { #expect(entered.comes()) }
    // A fourth would enter within this time.
    #expect(entered.wait(timeout: .now() + .milliseconds(300)) == .timedOut)
    for _ in 4...500 {
      inside.removeFirst()
      #expect(entered.comes())
      #expect(inside.all.count == 3)
    }
  }

  @Test func theStoreForgetsInMemoryAndNotOnDisk() throws {
    let store = try PictureStore(budget: 10_000)
    defer { store.close() }
    for id in 1...30 { try store.write([UInt8](repeating: UInt8(id), count: 1_000), .photo, of: id) }
    #expect(store.cachedBytes <= 10_000)
    // As under memory pressure.
    store.dropCache()
    #expect(store.cachedBytes == 0)
    for id in 1...30 { #expect(store.read(.photo, of: id) == [UInt8](repeating: UInt8(id), count: 1_000)) }
    #expect(store.cachedBytes <= 10_000)
    store.remove(30)
    #expect(store.read(.photo, of: 30) == nil)
    #expect(store.read(.thumbnail, of: 1) == nil)
  }

  /// Few of the rounds end a removal between the look-up and the creation of a file: hence many.
  @Test func aStoreThatIsClosedLeavesNoFiles() throws {
    for _ in 0..<150 {
      let store = try PictureStore()
      let begun = DispatchSemaphore(value: 0)
      let writers = DispatchGroup()
      for writer in 0..<4 {
        DispatchQueue.global().async(group: writers) {
          var id = writer
          while (try? store.write([1], .photo, of: id)) != nil {
            id += 4
            if id > 40 { begun.signal() }
          }
        }
      }
      // Files are there, and more come until a writer finds the directory gone.
      #expect(begun.comes())
      store.close()
      #expect(writers.wait(timeout: .now() + .seconds(120)) == .success)
      let directory = store.directory
      for left in [directory, directory.appendingPathExtension("removed")] {
        #expect(!FileManager.default.fileExists(atPath: left.path))
      }
    }
  }

  @Test func theCommandLineIsRead() throws {
    func parse(_ words: String...) throws -> Options {
      var arguments = Arguments(words.map { Bytes($0.utf8) })
      return try Options(&arguments)
    }
    #expect(try parse() == Options())
    let options = try parse("--port", "0", "--internet", "http://a/", "--internet", "http://b/")
    #expect(
      options.port == 0 && options.internet == ["http://a/", "http://b/"] && options.host == "127.0.0.1")
    for mistake in ["--port=70000", "--host=", "photo.jpg", "--name"] {
      #expect(throws: UsageError.self) { try parse(mistake) }
    }
  }
}
