import ExampleSupport
import Glibc

private let program = Program(name: "googlypuff", help: Options.help)
/// Starts the program and ends it.
private let control = DispatchQueue(label: "googlypuff.control")
// SAFETY: OWNED BY `control`.
nonisolated(unsafe) private var store: PictureStore?

/// Runs the program, and hands the main thread over to the main queue.
/// - Parameter farm: Searches the photos, instead of this process.
public func runProgram(farm: Farm? = nil) -> Never {
  let options = program.options(Options.init)
  if let obstacle = Picture.obstacle { fail(obstacle) }
  // Sending to a client that has gone must fail with an error, not end the program.
  signal(SIGPIPE, SIG_IGN)
  let begin = { @Sendable in start(options, farm) }
  Signals.handle([SIGINT, SIGTERM, SIGHUP], on: control, whenReady: begin) { _ in
    store?.close()
    // Not `exit`: it would destroy OpenCV's globals while other threads use them.
    _exit(0)
  }
  dispatchMain()
}

/// Connects the parts of the program.
private func start(_ options: Options, _ farm: Farm?) {
  do {
    let listener = try listen(options)
    let store = try PictureStore()
    GooglyPuffKit.store = store
    let manager = PhotoManager.shared
    // Each has its own, so that uploads do not wait for servers that do not answer.
    let (uploads, downloads) = (Turnstile(places: Limits.filesAtOnce), Turnstile(places: Limits.filesAtOnce))
    let gallery = Gallery(manager: manager, store: store, farm: farm)
    let darkroom = Darkroom(manager: manager, store: store)
    let router = Router(
      address: listener.address, resources: try Resources(farm: farm),
      internet: options.internet.isEmpty ? Resources.samples(at: listener.address) : options.internet,
      manager: manager, store: store, gallery: gallery,
      batches: Batches(manager: manager) { batch in gallery.batchEnded(batch) },
      downloads: Downloads(manager: manager, darkroom: darkroom, turnstile: downloads), darkroom: darkroom)
    Server(listener, turnstile: uploads, plan: router.plan).start()
    _ = writeAll(Bytes("googlypuff: http://\(listener.address)/\n".utf8), to: STDOUT_FILENO)
  } catch let error as ServerError {
    fail(error.message)
  } catch {
    store?.close()
    fail("\(error)")
  }
}

private func listen(_ options: Options) throws -> Listener {
  if options.port == nil, let listener = try? Listener(host: options.host, port: 8042) { return listener }
  return try Listener(host: options.host, port: options.port ?? 0)
}

private func fail(_ message: String) -> Never {
  program.complain(message)
  exit(1)
}

/// What the user asked for.
package struct Options: Sendable, Equatable {
  package var host = "127.0.0.1"
  /// 0 lets the kernel choose a port. Nil means 8042, or a free port if 8042 is taken.
  package var port: UInt16?
  /// The URLs that "Le Internet" offers. If empty, the sample photos.
  package var internet: [String] = []

  package init() {}

  package init(_ arguments: inout Arguments) throws(UsageError) {
    while let argument = try arguments.next() {
      switch argument {
      case .name(let name): throw UsageError("no names are expected: \(name.text)")
      case .option("--host"): host = try arguments.value().text
      case .option("-p"), .option("--port"): port = UInt16(try arguments.number(in: 0...65_535))
      case .option("--internet"): internet.append(try arguments.value().text)
      case .option: throw arguments.unknownOption()
      }
    }
  }

  static let help = """
    usage: googlypuff [options]

    A photo gallery in the browser. Open a photo, and every face has googly eyes.

        --internet URL   a photo that "Le Internet" offers; may be repeated (default: three sample photos)
    -p, --port N         the port; 0 lets the kernel choose one (default: 8042, or a free one if 8042 is taken)
        --host ADDRESS   the address to listen on (default: 127.0.0.1, which only this machine can reach)
    -h, --help           print this text

    Photos are kept in a temporary directory, which is removed when SIGINT (Ctrl-C), SIGTERM or SIGHUP ends the program.

    """
}
