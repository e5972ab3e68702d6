import CBench
import Glibc

/// Swift Concurrency as the toolchain ships it, on whichever libdispatch.so the loader is told to take.
/// Measures one row and ends, as the other programs do.
///
/// The main function runs on the main actor, hence on the main queue, which the library services.
@main
enum Main {
  static func main() async {
    var quick = false
    var name: String?
    var arguments = CommandLine.arguments.dropFirst()
    while let argument = arguments.popFirst() {
      switch argument {
      case "--list":
        for row in Row.all { print("\(row.name)\tns\t\(row.question)") }
        return
      case "--library": exit(bench_print_dispatch_libraries())
      case "--quick": quick = true
      case "--row": name = arguments.popFirst()
      default: fail("usage: --list | --library | --row NAME [--quick]")
      }
    }
    guard let row = Row.all.first(where: { $0.name == name }) else { fail("no such row; --list names them") }
    let count = quick ? max(row.count / 10, 1) : row.count
    print("\(row.name) \(await row.quickestPass(count)) \(count) \(count)")
  }
}
