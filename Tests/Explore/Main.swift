import Dispatch
import Glibc

/// `explore-programs NAME [--mended]`. Without arguments it prints the names.
@main
enum Main {
  static func main() {
    let arguments = CommandLine.arguments.dropFirst()
    guard let name = arguments.first else {
      for program in ExplorePrograms.all { print(program.name) }
      return
    }
    guard let program = ExplorePrograms.all.first(where: { $0.name == name }) else {
      complain("explore-programs: no program '\(name)'")
      exit(2)
    }
    let mended = arguments.contains("--mended")
    switch program.body {
    case .plain(let body): body(mended)
    case .task(let body):
      Task {
        await body(mended)
        exit(0)
      }
      dispatchMain()
    }
  }
}
