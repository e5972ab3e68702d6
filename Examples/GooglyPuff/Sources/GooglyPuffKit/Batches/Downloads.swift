import Concourse
import Foundation
import FoundationNetworking

import class Concourse.DispatchQueue
import class Concourse.DispatchSemaphore

/// Downloads photos with URLSession. Foundation's internal queues and the delegate's queue run on Concourse.
///
/// What the delegate has not taken yet is bounded, by `BoundedQueue`. Calls into the session wait for Foundation's own
/// queue, which may wait for the delegate. So they are made on the queue `control`, never on the delegate's.
// SAFETY: `downloads` is OWNED BY `queue`, a serial queue, on which the delegate is called.
package final class Downloads: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  private struct Download {
    let id: Int
    let turn: Turnstile.Turn
    var bytes: [UInt8] = []
    var redirections = 0
    /// Why the download was cancelled here.
    var objection: String?
  }

  private let queue = DispatchQueue(label: "googlypuff.downloads", qos: .utility)
  private let control = DispatchQueue(label: "googlypuff.downloads.control", qos: .utility)
  private let manager: PhotoManager
  private let darkroom: Darkroom
  private let turnstile: Turnstile
  private let longest: Int
  private var downloads: [Int: Download] = [:]
  private var session: URLSession!

  /// - Parameters:
  ///   - patience: a download fails after so many seconds without a byte.
  ///   - longest: a download fails if it is not complete after so many seconds.
  package init(
    manager: PhotoManager, darkroom: Darkroom, turnstile: Turnstile, patience: Int = 15, longest: Int = 120
  ) {
    self.manager = manager
    self.darkroom = darkroom
    self.turnstile = turnstile
    self.longest = longest
    super.init()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = Double(patience)
    configuration.urlCache = nil
    configuration.httpShouldSetCookies = false
    session = URLSession(configuration: configuration, delegate: self, delegateQueue: BoundedQueue(queue))
  }

  package func fetch(_ address: String, as id: Int) {
    guard manager.claim(id) else { return }
    guard let url = Downloads.webURL(address) else {
      return manager.fail(id, "not an address of the web (http:// or https://)")
    }
    turnstile.enter { [self] turn in
      control.async { [self] in
        let task = session.dataTask(with: url)
        queue.sync { downloads[task.taskIdentifier] = Download(id: id, turn: turn) }
        manager.work(on: id) { [self] in cancel(task) }
        task.resume()
        queue.asyncAfter(deadline: .now() + .seconds(longest)) { [self] in
          object(to: task, "the server took too long")
          cancel(task)
        }
      }
    }
  }

  /// Cancels all downloads. The session retains its delegate and several descriptors until then.
  package func close() { session.invalidateAndCancel() }

  /// Nil for `file:` and `data:` URLs, which Foundation would load too. The scheme becomes lower case: URLSession knows
  /// no `HTTP:`.
  private static func webURL(_ address: String) -> URL? {
    guard var parts = URLComponents(string: address), let scheme = parts.scheme?.lowercased(),
      ["http", "https"].contains(scheme), !(parts.host ?? "").isEmpty
    else { return nil }
    parts.scheme = scheme
    return parts.url
  }

  private func cancel(_ task: URLSessionTask) { control.async { task.cancel() } }

  /// Records why a download is cancelled. The first reason is kept.
  private func object(to task: URLSessionTask, _ reason: String) {
    if downloads[task.taskIdentifier]?.objection == nil { downloads[task.taskIdentifier]?.objection = reason }
  }

  /// Calls one of Foundation's completion handlers.
  private func answer<Value: Sendable>(_ handler: @escaping (Value) -> Void, _ value: Value) {
    // SAFETY: Foundation's handlers may be called on any thread, once.
    nonisolated(unsafe) let handler = handler
    control.async { handler(value) }
  }

  // MARK: The delegate, on the queue

  package func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    let target = request.url.flatMap { Downloads.webURL($0.absoluteString) }
    if target == nil { object(to: task, "it redirects to an address that is not http or https") }
    downloads[task.taskIdentifier]?.redirections += 1
    if downloads[task.taskIdentifier]?.redirections ?? 0 > 10 {
      object(to: task, "too many redirects")
    }
    let next = downloads[task.taskIdentifier]?.objection == nil ? target.map { URLRequest(url: $0) } : nil
    answer(completionHandler, next)
  }

  package func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    if status != 200 {
      object(
        to: dataTask,
        "the server answered \(status) (\(HTTPURLResponse.localizedString(forStatusCode: status)))")
    } else if response.expectedContentLength > Int64(Limits.fileBytes) {
      object(to: dataTask, Limits.fileTooLarge)
    }
    let isFine = downloads[dataTask.taskIdentifier]?.objection == nil
    answer(completionHandler, isFine ? .allow : .cancel)
    // After a 401, Foundation would wait for a password in spite of `.cancel`.
    if !isFine { cancel(dataTask) }
  }

  package func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let task = dataTask.taskIdentifier
    // Appended in place: a second reference to the array would make each append copy it.
    guard downloads[task]?.objection == nil, let count = downloads[task]?.bytes.count else { return }
    guard count + data.count <= Limits.fileBytes else {
      object(to: dataTask, Limits.fileTooLarge)
      downloads[task]?.bytes = []
      return cancel(dataTask)
    }
    downloads[task]?.bytes.append(contentsOf: data)
  }

  package func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    guard let download = downloads.removeValue(forKey: task.taskIdentifier) else { return }
    if let reason = download.objection ?? error.map(Downloads.words) {
      manager.fail(download.id, reason)
    } else {
      darkroom.develop(download.bytes, as: download.id, turn: download.turn)
    }
  }

  private static func words(for error: any Error) -> String {
    switch (error as? URLError)?.code {
    case .timedOut: "the server took too long"
    case .cannotFindHost, .dnsLookupFailed: "there is no server of that name"
    case .cannotConnectToHost: "the server cannot be reached"
    case .networkConnectionLost: "the connection broke off"
    case .notConnectedToInternet: "there is no connection to the Internet"
    case .badURL, .unsupportedURL: "the address cannot be used"
    case .cancelled: "the download was cancelled"
    default: error.localizedDescription
    }
  }
}

/// The delegate's queue. Adding a call waits while many are pending: a server that is faster than the delegate, or a
/// small file that unpacks to gigabytes, would otherwise fill the memory with data for it.
// SAFETY: what it adds to its superclass is constant.
private final class BoundedQueue: OperationQueue, @unchecked Sendable {
  private let queue: DispatchQueue
  /// Each call has up to 16 KiB of data.
  private let places = DispatchSemaphore(value: 64)

  init(_ queue: DispatchQueue) { self.queue = queue }

  override func addOperation(_ block: @escaping @Sendable () -> Void) {
    places.wait()
    queue.async { [places] in
      block()
      places.signal()
    }
  }
}
