import ConcourseCluster
import Glibc

// The command for items that were put aside. It knows neither their type nor the options of their queue.

let help = """
  usage: concourse-cluster failed   --servers URL[,URL...] [OPTION...] LABEL
         concourse-cluster put-back --servers URL[,URL...] [OPTION...] LABEL NUMBER...|--all
         concourse-cluster discard  --servers URL[,URL...] [OPTION...] LABEL NUMBER...|--all

  failed lists the items of the cluster queue LABEL that were put aside, the oldest first: the number of each, its attempts,
  its bytes, when it was put aside, its id, and why its last attempt failed. put-back submits items again, as the last ones of
  the queue. discard removes them for good. --all means the items that were put aside before the command began.

    --after NUMBER, --count N           of failed: only items after that number; at most so many (1,000)
    --tls                               encrypts the connection. So does each of the following
    --authorities FILE                  certificates that sign those of the servers
    --certificate FILE, --key FILE      what this program shows to the servers
    --server-name NAME                  what the servers' certificates have to name

  Credentials are in the environment: CONCOURSE_CLUSTER_USER and CONCOURSE_CLUSTER_PASSWORD, CONCOURSE_CLUSTER_TOKEN, or
  CONCOURSE_CLUSTER_CREDENTIALS, the path of a file. CONCOURSE_CLUSTER_SERVERS stands for --servers.

  The status is 0 if all was done, 1 if something failed, 2 if the command cannot be understood.
  """

func complain(_ text: String) {
  let line = "concourse-cluster: \(text)\n"
  _ = write(STDERR_FILENO, line, line.utf8.count)
}

func fail(_ text: String, status: Int32 = 1) -> Never {
  complain(text)
  exit(status)
}

func misused(_ text: String) -> Never { fail("\(text); see concourse-cluster --help", status: 2) }

func variable(_ name: String) -> String? {
  getenv("CONCOURSE_CLUSTER_\(name)").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
}

struct Command {
  enum Verb: String {
    case failed
    case putBack = "put-back"
    case discard
  }

  let verb: Verb
  var servers = variable("SERVERS") ?? ""
  var label = ""
  var numbers: [UInt64] = []
  var all = false
  var after: UInt64 = 0
  var count = 1_000
  var tls: ClusterTLS?

  private mutating func encrypted(_ change: (inout ClusterTLS) -> Void) {
    var new = tls ?? ClusterTLS()
    change(&new)
    tls = new
  }

  init(_ arguments: [String]) {
    guard let first = arguments.first else { misused("a command is missing") }
    guard let verb = Verb(rawValue: first) else { misused("unknown command \"\(first)\"") }
    self.verb = verb
    var rest = arguments.dropFirst()
    var words: [String] = []
    func value(_ option: String) -> String {
      guard let value = rest.popFirst() else { misused("\(option) needs a value") }
      return value
    }
    func number<Number: FixedWidthInteger>(_ option: String, _ text: String) -> Number {
      guard let number = Number(text), number >= 0 else {
        misused("\(option) needs a number, not \"\(text)\"")
      }
      return number
    }
    while let argument = rest.popFirst() {
      switch argument {
      case "--servers": servers = value(argument)
      case "--all" where verb != .failed: all = true
      case "--after" where verb == .failed: after = number(argument, value(argument))
      case "--count" where verb == .failed: count = number(argument, value(argument))
      case "--tls": encrypted { _ in }
      case "--authorities": encrypted { $0.authorities = value(argument) }
      case "--certificate": encrypted { $0.certificate = value(argument) }
      case "--key": encrypted { $0.key = value(argument) }
      case "--server-name": encrypted { $0.serverName = value(argument) }
      case _ where argument.hasPrefix("-"): misused("\(first) has no option \(argument)")
      default: words.append(argument)
      }
    }
    if servers.isEmpty { misused("--servers is missing") }
    guard let label = words.first, !label.isEmpty else { misused("the label of a queue is missing") }
    if !FailedItems.isLabel(label) { misused("no queue has a label that long") }
    self.label = label
    words.removeFirst()
    switch verb {
    case .failed: if let word = words.first { misused("failed takes one label, and no \"\(word)\"") }
    case .putBack, .discard:
      numbers = words.map { number(first, $0) }
      if numbers.isEmpty != all { misused("\(first) needs the numbers of items, or --all") }
    }
  }

  var credentials: ClusterCredentials {
    if let path = variable("CREDENTIALS") { return .file(path: path) }
    if let token = variable("TOKEN") { return .token(token) }
    if let user = variable("USER") { return .password(user: user, password: variable("PASSWORD") ?? "") }
    return .none
  }
}

extension String {
  /// One line, and nothing that a terminal takes for a command.
  var printable: String {
    let scalars = unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }
    return String(String.UnicodeScalarView(scalars))
  }
}

func list(_ command: Command, _ items: FailedItems) async throws {
  var rows = [["number", "attempts", "bytes", "put aside", "id", "error"]]
  for item in try await items.list(after: command.after, atMost: command.count) {
    // Down to the second.
    let time = String(item.time.prefix(19).map { $0 == "T" ? " " : $0 })
    rows.append([
      "\(item.number)", "\(item.attempts)", "\(item.bytes)", time, (item.id ?? "-").printable,
      item.reason.printable,
    ])
  }
  let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
  for row in rows {
    let cells = zip(row, widths).map { text, width in
      text + String(repeating: " ", count: max(0, width - text.count))
    }
    print((cells.dropLast() + [row.last!]).joined(separator: "  "))
  }
}

/// - Returns: How many items could not be changed.
func change(_ command: Command, _ items: FailedItems) async throws -> Int {
  let last = try await items.last()
  var (done, failed): (Int, Int) = (0, 0)
  // Also if an error ends the command.
  defer { print("\(command.verb == .discard ? "discarded" : "put back"): \(done)") }
  func change(_ number: UInt64) async throws {
    do {
      if command.verb == .discard { try await items.discard(number) } else { try await items.putBack(number) }
      done += 1
    } catch ClusterError.noSuchFailure where command.all {
      // Another program has taken it meanwhile.
    } catch {
      failed += 1
      complain("\(command.verb.rawValue) \(number): \(error)".printable)
      // One item does not keep the others. Servers that answer no question do, and that ends the command.
      _ = try await items.last()
    }
  }
  for number in command.numbers { try await change(number) }
  var after: UInt64 = 0
  while command.all {
    let page = try await items.list(after: after, atMost: 100).filter { $0.number <= last }
    guard let end = page.last?.number else { break }
    for item in page { try await change(item.number) }
    after = end
  }
  return failed
}

let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.contains("--help") || arguments.contains("-h") {
  print(help)
  exit(0)
}
let command = Command(arguments)
do {
  let items = try await FailedItems(
    of: command.label, servers: command.servers.split(separator: ",").map { String($0) },
    credentials: command.credentials, tls: command.tls)
  var failed = 0
  if command.verb == .failed {
    _ = try await items.last()
    try await list(command, items)
  } else {
    failed = try await change(command, items)
  }
  await items.close()
  exit(failed == 0 ? 0 : 1)
} catch {
  fail("\(error)".printable)
}
