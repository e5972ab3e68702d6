import CBench
import Glibc

/// The smallest program that has a task: how long do its start and its end take?
@main
enum Main {
  static func main() async {
    if CommandLine.arguments.dropFirst() == ["--library"] { exit(bench_print_dispatch_libraries()) }
    // A timed run that hangs ends itself.
    alarm(30)
    print(await Task.detached { "hello" }.value)
  }
}
