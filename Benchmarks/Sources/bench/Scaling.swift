import CBench

/// Throughput of one program on 1, 2, 4 and so on to all processors of the machine: of the two libraries, and of rivals
/// at the rows for which they have a counterpart. Each number is a process of its own, whose affinity mask has just those
/// processors; the contestants take turns.
struct Scaling {
  /// Milliseconds that a process measures, unless `--point` says otherwise.
  static let point = (usual: 300, quick: 20)

  /// On the two libraries first, then rivals.
  let contestants: [Contestant]
  let options: Options
  let processors: Processors

  var milliseconds: Int { options.point ?? (options.quick ? Self.point.quick : Self.point.usual) }
  var rounds: Int { options.roundsGiven || options.quick ? options.rounds : 3 }

  /// One row, on each number of processors.
  struct Row {
    let name: String
    let question: String
    /// Names of the contestants that have it, and for each number of processors what they did.
    let having: Set<String>
    var best: [[String: Double]]
  }

  struct Result {
    let rows: [Row]
    let counts: [Int]
    let contestants: [String]
    let failures: [String]
  }

  /// Measures. A contestant that fails at a row takes no further part in it.
  func measure() throws(Failure) -> Result {
    let counts = processors.counts
    var offers: [Set<String>] = []
    for contestant in contestants { offers.append(Set(try contestant.rows().map(\.name))) }
    var rows: [Row] = []
    var failures: [String] = []
    for info in try contestants[0].rows() where options.wants(row: info.name) {
      var remaining = zip(contestants, offers).filter { $0.1.contains(info.name) }.map(\.0)
      var row = Row(
        name: info.name, question: info.question, having: Set(remaining.map(\.name)),
        best: counts.map { _ in [:] })
      for (index, count) in counts.enumerated() {
        for round in 1...rounds {
          for contestant in remaining {
            progress("\(info.name) on \(count): round \(round) of \(rounds), \(contestant.name)")
            do throws(Failure) {
              let rate = try rate(of: contestant, info.name, on: count)
              row.best[index][contestant.name] = max(row.best[index][contestant.name] ?? 0, rate)
            } catch {
              failures.append("\(contestant.name) on \(count): \(error.message)")
              remaining.removeAll { $0.name == contestant.name }
            }
          }
        }
      }
      rows.append(row)
    }
    progress(nil)
    guard !rows.isEmpty else { throw Failure("no row has such a name") }
    return Result(rows: rows, counts: counts, contestants: contestants.map(\.name), failures: failures)
  }

  /// Operations in a second. The program's libraries, threads and clients inherit the mask.
  private func rate(of contestant: Contestant, _ row: String, on count: Int) throws(Failure) -> Double {
    try processors.use(count)
    defer { try? processors.use(processors.order.count) }
    guard let reading = try contestant.measure(row, ["--milliseconds", "\(milliseconds)"])[row],
      reading.value > 0
    else {
      throw Failure("\(contestant.program) --row \(row): no value")
    }
    return reading.value
  }
}

/// The processors that this program may use, in an order that fills one cache before the next: of each package, of each
/// last-level cache in it, first one thread of each core, then the others. Without sysfs in the order of their numbers.
struct Processors {
  let order: [Int32]

  init() throws(Failure) {
    var numbers = [Int32](repeating: 0, count: 4096)
    let count = bench_processors(&numbers, Int32(numbers.count))
    guard count > 0 else { throw Failure("sched_getaffinity: \(errorText())") }
    order = Self.sorted(Array(numbers[..<Int(count)])) { path in
      (try? readText("/sys/devices/system/cpu/\(path)"))?.split(separator: "\n").first.map(String.init)
    }
  }

  /// - Parameter read: the first line of a file of sysfs, by its path below `cpu`; nil if there is none.
  static func sorted(_ numbers: [Int32], reading read: (String) -> String?) -> [Int32] {
    func first(of list: String?) -> Int? {
      list.flatMap { Int($0.prefix { $0.isNumber }) }
    }
    let keys = numbers.map { number in
      let folder = "cpu\(number)"
      let package = first(of: read("\(folder)/topology/physical_package_id")) ?? 0
      let cache =
        first(of: read("\(folder)/cache/index3/shared_cpu_list"))
        ?? first(of: read("\(folder)/cache/index2/shared_cpu_list"))
      let core = first(of: read("\(folder)/topology/thread_siblings_list")) ?? Int(number)
      return [package, cache ?? 0, core == Int(number) ? 0 : 1, Int(number)]
    }
    return zip(keys, numbers).sorted { $0.0.lexicographicallyPrecedes($1.0) }.map(\.1)
  }

  /// 1, 2, 4 and so on, and all.
  var counts: [Int] {
    var counts: [Int] = []
    var count = 1
    while count < order.count {
      counts.append(count)
      count *= 2
    }
    return counts + [order.count]
  }

  /// Programs that are started from now on use the first `count` only.
  func use(_ count: Int) throws(Failure) {
    guard bench_run_on(order, Int32(count)) == 0 else { throw Failure("sched_setaffinity: \(errorText())") }
  }
}
