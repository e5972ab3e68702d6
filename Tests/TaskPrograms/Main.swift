import Concourse
import ConcourseRuntime
import Glibc

/// `task-programs [--fork] NAME...`: runs programs one after the other; the names `hanging`, `healthy` and `sleeping`
/// stand for all of their kind.
///
/// A hanging program blocks two threads in tasks until a further task releases them. The further task is submitted when
/// both threads sleep and, with `CONCOURSE_STRICT`, a line has named the place.
@main
enum Main {
  static func main() {
    var names = CommandLine.arguments.dropFirst()
    if names.first == "--fork" {
      names = names.dropFirst()
      goOnInChild()
    }
    let programs = Hanging.all + Healthy.all + Sleeping.all
    let chosen = names.flatMap { name in
      switch name {
      case "hanging": Hanging.all
      case "healthy": Healthy.all
      case "sleeping": Sleeping.all
      default: programs.filter { $0.name == name }
      }
    }
    guard !chosen.isEmpty else {
      print("usage: task-programs hanging|healthy|sleeping|\(programs.map(\.name).joined(separator: "|"))")
      exit(2)
    }
    // The main thread serves the main queue meanwhile.
    startThread {
      for program in chosen { program.run() }
      exit(0)
    }
    dispatchMain()
  }
}

/// Forks; the parent ends as the child does. (Swift hides `fork`.)
private func goOnInChild() {
  let fork = unsafeBitCast(dlsym(nil, "fork"), to: (@convention(c) () -> pid_t).self)
  let child = fork()
  guard child != 0 else { return }
  var status: Int32 = 0
  waitpid(child, &status, 0)
  _exit(status == 0 ? 0 : 1)
}

/// One program.
struct Program: Sendable {
  let name: String
  let run: @Sendable () -> Void
}

extension Program {
  /// A program that ends if its task does.
  static func healthy(_ name: String, _ body: @escaping @Sendable () async -> Void) -> Program {
    Program(name: name) {
      let ended = DispatchSemaphore(value: 0)
      Task.detached {
        await body()
        ended.signal()
      }
      ended.wait()
      say("\(name) ended")
    }
  }

  /// Two tasks that block, and a third one that releases them.
  struct Scene: Sendable {
    /// How many threads of the pool are blocked before.
    var others = 0
    /// Begins the task of this number, 0 or 1, which calls the closure.
    var start: @Sendable (Int, @escaping @Sendable () -> Void) -> Void = { _, block in
      Task.detached { block() }
    }
    /// Blocks the thread of the task of this number.
    let block: @Sendable (Int) -> Void
    /// The priority of the third task.
    var priority: TaskPriority?
    /// Releases both.
    let release: @Sendable () async -> Void
  }

  static func hanging(_ name: String, _ make: @escaping @Sendable () -> Scene) -> Program {
    Program(name: name) {
      let namedBefore = TaskWaits.namedPlaces
      let scene = make()
      let ended = DispatchSemaphore(value: 0)
      for number in 0..<2 {
        scene.start(number) {
          scene.block(number)
          ended.signal()
        }
      }
      // If that does not come, the program goes on, and the test finds that no place was named.
      let end = DispatchTime.now() + .seconds(20)
      while Inspection.Pool.read().blocked < scene.others + 2
        || areNamed && TaskWaits.namedPlaces == namedBefore,
        DispatchTime.now() < end
      {
        usleep(200)
      }
      say("\(name) waits")
      Task.detached(priority: scene.priority) { await scene.release() }
      for _ in 0..<2 { ended.wait() }
      // The threads of this program must not count as blocked in the next one.
      while Inspection.Pool.read().blocked > 0 { usleep(200) }
      let count = TaskWaits.namedPlaces - namedBefore
      say("\(name) ended\(areNamed ? ", \(count) named" : "")")
    }
  }

  private static let areNamed = getenv("CONCOURSE_STRICT") != nil
}

func say(_ text: String) {
  let line = Array("\(text)\n".utf8)
  write(1, line, line.count)
}

/// A thread of the program's own.
func startThread(_ body: @escaping @Sendable () -> Void) {
  let box = Unmanaged.passRetained(Box(body))
  var thread = pthread_t()
  pthread_create(
    &thread, nil,
    { argument in
      Unmanaged<Box>.fromOpaque(argument!).takeRetainedValue().body()
      return nil
    }, box.toOpaque())
}

private final class Box {
  let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}
