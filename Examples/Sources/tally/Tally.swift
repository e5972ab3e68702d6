import Concourse
import Foundation

// tally FILE...: prints how many words the files have, and the most frequent ones, as JSON.
//
// The file imports both Foundation and Concourse. The plugin ConcourseNames makes `DispatchQueue` mean Concourse's.

@main
struct Tally {
  /// Reads files, on threads that may block.
  private static let disk = DispatchConcurrentQueue(label: "tally.disk", qos: .utility)
  /// Counts words.
  private static let counting = DispatchQueue.global(qos: .userInitiated)

  static func main() async {
    let paths = CommandLine.arguments.dropFirst()
    let census = Census()
    await withTaskGroup { tasks in
      for path in paths {
        tasks.addTask(executorPreference: counting) { await count(path, in: census) }
      }
    }
    print(await census.report())
    exit(await census.failures == 0 ? 0 : 1)
  }

  private static func count(_ path: String, in census: Census) async {
    do {
      let contents = try await disk.run { try Data(contentsOf: URL(filePath: path)) }
      // Back on the preferred queue.
      dispatchPrecondition(condition: .onQueue(counting))
      dispatchPrecondition(condition: .notOnQueue(.main))
      var words: [String: Int] = [:]
      for word in String(decoding: contents, as: UTF8.self).split(whereSeparator: { !$0.isLetter }) {
        words[word.lowercased(), default: 0] += 1
      }
      await census.add(words)
    } catch {
      FileHandle.standardError.write(Data("tally: \(path): \(error.localizedDescription)\n".utf8))
      await census.noteFailure()
    }
  }
}

/// The counts of all files: an actor whose jobs are items of a serial queue.
actor Census {
  private nonisolated let queue = DispatchSerialQueue(label: "tally.census")
  nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

  private var words: [String: Int] = [:]
  private var files = 0
  private(set) var failures = 0

  func add(_ more: [String: Int]) {
    dispatchPrecondition(condition: .onQueue(queue))
    files += 1
    words.merge(more, uniquingKeysWith: +)
  }

  func noteFailure() { failures += 1 }

  /// The result as one line of JSON.
  func report() -> String {
    struct Entry: Encodable {
      let word: String
      let count: Int
    }
    struct Report: Encodable {
      let files: Int
      let words: Int
      let frequent: [Entry]
    }
    let ranked = words.map { Entry(word: $0.key, count: $0.value) }
      .sorted { ($1.count, $0.word) < ($0.count, $1.word) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let report = Report(
      files: files, words: words.values.reduce(0, +), frequent: Array(ranked.prefix(3)))
    guard let text = try? encoder.encode(report) else { fatalError("a report that JSON cannot express") }
    return String(decoding: text, as: UTF8.self)
  }
}
