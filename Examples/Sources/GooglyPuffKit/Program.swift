import Concourse
import Glibc

/// Runs the program: connects its parts, and hands the main thread over to the main queue.
package func runProgram() -> Never {
  let options: Options
  do {
    switch try Options.parse(Array(CommandLine.arguments.dropFirst())) {
    case .help:
      write(Options.help, to: STDOUT_FILENO)
      exit(0)
    case .serve(let wanted): options = wanted
    }
  } catch {
    complain("\(error.message)\nTry 'googlypuff --help'.")
    exit(2)
  }
  if let obstacle = Picture.obstacle {
    complain(obstacle)
    exit(1)
  }
  // Sending to a client that has gone must fail with an error, not end the program.
  signal(SIGPIPE, SIG_IGN)
  do {
    let listener = try listen(options)
    let store = try PictureStore()
    let pressure = MemoryPressure { store.dropCache() }
    let signals = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
      source.setEventHandler {
        store.close()
        // Not `exit`: it would destroy OpenCV's globals while other threads use them.
        _exit(0)
      }
      source.activate()
      return source
    }
    // After the signals: it prints the address, and from then on the files must not outlive the program.
    let server = try serve(options, listener, store)
    withExtendedLifetime((server, pressure, signals)) { dispatchMain() }
  } catch let failure as Listener.Failure {
    complain(failure.message)
  } catch {
    complain("\(error)")
  }
  exit(1)
}

private func listen(_ options: Options) throws(Listener.Failure) -> Listener {
  if let port = options.port { return try Listener(host: options.host, port: port) }
  do {
    return try Listener(host: options.host, port: 8042)
  } catch {
    return try Listener(host: options.host, port: 0)
  }
}

private func serve(_ options: Options, _ listener: Listener, _ store: PictureStore) throws -> Server {
  let manager = PhotoManager.shared
  let turnstile = Turnstile(places: Limits.filesAtOnce)
  let gallery = Gallery(manager: manager, store: store)
  let darkroom = Darkroom(manager: manager, store: store)
  let router = Router(
    address: listener.address, isLoopback: listener.isLoopback, resources: try Resources(),
    internet: options.internet.isEmpty ? Resources.samples(at: listener.address) : options.internet,
    manager: manager, store: store, gallery: gallery,
    batches: Batches(manager: manager) { batch in gallery.batchEnded(batch) },
    downloads: Downloads(manager: manager, darkroom: darkroom, turnstile: turnstile), darkroom: darkroom)
  let server = Server(listener, turnstile: turnstile, plan: router.plan)
  server.start()
  write("googlypuff: http://\(listener.address)/\n", to: STDOUT_FILENO)
  return server
}

private func complain(_ message: String) { write("googlypuff: \(message)\n", to: STDERR_FILENO) }

private func write(_ text: String, to descriptor: Int32) {
  var text = text
  // SAFETY: the buffer has `count` bytes. A failed write is ignored.
  _ = text.withUTF8 { Glibc.write(descriptor, $0.baseAddress, $0.count) }
}
