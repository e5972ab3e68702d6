import Glibc

/// Measures one row and ends: a fresh process for each measurement, so that no row inherits another
/// row's threads, caches or heap.
@main
enum Main {
  static func main() {
    var scale = Scale(quick: false)
    var name: String?
    var list = false
    var arguments = CommandLine.arguments.dropFirst()
    while let argument = arguments.popFirst() {
      switch argument {
      case "--list": list = true
      case "--quick": scale = Scale(quick: true)
      case "--row": name = arguments.popFirst()
      default: usage()
      }
    }
    if list {
      for row in Row.all {
        for figure in row.figures {
          print("\(figure.name)\t\(figure.unit.rawValue)\t\(figure.question)\t\(row.name)")
        }
      }
    } else if let name {
      guard let row = Row.all.first(where: { $0.name == name }) else { fail("no row named \(name)") }
      let results = row.measure(scale)
      verify(results.count, equals: row.figures.count, "a measurement for each figure")
      for (figure, result) in zip(row.figures, results) {
        print("\(figure.name) \(result.value) \(result.operations) \(result.check)")
      }
    } else {
      usage()
    }
  }

  private static func usage() -> Never {
    fail("usage: --list | --row NAME [--quick]")
  }
}
