import Concourse
import Glibc

/// The program: runs the listings that are named, or all, and ends.
///
/// The main thread serves the main queue, as in any program with a main queue; the listings run elsewhere.
package func runProgram(_ arguments: [String]) -> Never {
  if arguments.contains("--help") || arguments.contains("--list") {
    for listing in Listing.all {
      let gap = String(repeating: " ", count: max(1, 18 - listing.name.utf8.count))
      say(listing.name + gap + listing.summary)
    }
    exit(0)
  }
  let named = arguments.map { name in
    guard let listing = Listing.all.first(where: { $0.name == name }) else {
      write("guide: no listing is called '\(name)'; 'guide --list' names them", to: STDERR_FILENO)
      exit(2)
    }
    return listing
  }
  let listings = named.isEmpty ? Listing.all : named
  DispatchQueue.global().async {
    for listing in listings {
      say("# \(listing.name): \(listing.summary)")
      listing.run(say)
    }
    exit(0)
  }
  dispatchMain()
}

/// Prints a line at once: the threads' lines are not to be torn apart.
@Sendable private func say(_ line: String) { write(line, to: STDOUT_FILENO) }

private func write(_ line: String, to descriptor: Int32) {
  let bytes = Array((line + "\n").utf8)
  _ = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
}
