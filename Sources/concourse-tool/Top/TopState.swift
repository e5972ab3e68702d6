/// What the keys have chosen.
struct TopState: Equatable {
  enum Order: String, CaseIterable {
    case rate, depth, wait, run, busy, name
  }

  enum View: Equatable {
    case all
    case queue(UInt64)
    case tasks
    case help
  }

  enum Outcome: Equatable {
    case goOn
    case quit
  }

  var order = Order.rate
  var isReversed = false
  var filter = ""
  var isEditingFilter = false
  var isFrozen = false
  var showsIdle = false
  var view = View.all
  var selected: UInt64?
  /// The first place of tasks that is shown.
  var firstTask = 0

  /// The queues in the order of the view.
  func rows(_ frame: TopFrame) -> [TopFrame.Queue] {
    let wanted = filter.lowercased()
    let shown = frame.queues.filter { queue in
      guard showsIdle || queue.isBusy else { return false }
      return wanted.isEmpty || Self.contains(queue.name.lowercased(), wanted)
    }
    func key(_ queue: TopFrame.Queue) -> Double {
      switch order {
      case .rate: Double(queue.activity.started)
      case .depth: Double(queue.depth ?? 0)
      case .wait: Double(queue.activity.wait.percentile(0.99) ?? 0)
      case .run: Double(queue.activity.run.percentile(0.99) ?? 0)
      case .busy: Double(queue.activity.busy)
      case .name: 0
      }
    }
    let sorted = shown.map { (key($0), $0) }.sorted { a, b in
      if a.0 != b.0 { return a.0 > b.0 }
      return (a.1.name, a.1.id) < (b.1.name, b.1.id)
    }.map(\.1)
    return isReversed ? sorted.reversed() : sorted
  }

  private static func contains(_ text: String, _ part: String) -> Bool {
    let (text, part) = (Array(text.utf8), Array(part.utf8))
    guard part.count <= text.count else { return false }
    return (0...text.count - part.count).contains { text[$0..<$0 + part.count].elementsEqual(part) }
  }

  mutating func handle(_ key: TerminalKey, _ frame: TopFrame?) -> Outcome {
    if isEditingFilter {
      edit(key)
      return .goOn
    }
    switch key {
    case .character("q"), .character("Q"): return .quit
    case .character("?"), .character("h"): view = view == .help ? .all : .help
    case .escape, .left, .backspace:
      if view == .all { filter = "" } else { view = .all }
    case .character("t"): view = view == .tasks ? .all : .tasks
    case .character("f"), .character(" "): isFrozen.toggle()
    case .character("/"): (view, isEditingFilter) = (.all, true)
    case .character("s"):
      order = Order.allCases[(Order.allCases.firstIndex(of: order)! + 1) % Order.allCases.count]
    case .character("r"): order = .rate
    case .character("d"): order = .depth
    case .character("w"): order = .wait
    case .character("x"): order = .run
    case .character("b"): order = .busy
    case .character("n"): order = .name
    case .character("R"): isReversed.toggle()
    case .character("a"): showsIdle.toggle()
    case .up, .character("k"): move(by: -1, frame)
    case .down, .character("j"): move(by: 1, frame)
    case .pageUp: move(by: -10, frame)
    case .pageDown: move(by: 10, frame)
    case .home: move(by: -.max / 2, frame)
    case .end: move(by: .max / 2, frame)
    case .enter, .right:
      if view == .all, let frame, let queue = selected ?? rows(frame).first?.id {
        (view, selected) = (.queue(queue), queue)
      }
    case .character, .other: break
    }
    return .goOn
  }

  private mutating func edit(_ key: TerminalKey) {
    switch key {
    case .enter: isEditingFilter = false
    case .escape: (filter, isEditingFilter) = ("", false)
    case .backspace: if !filter.isEmpty { filter.removeLast() }
    case .character(let character): if filter.count < 100 { filter.append(character) }
    case .up, .down, .left, .right, .pageUp, .pageDown, .home, .end, .other: break
    }
  }

  private mutating func move(by distance: Int, _ frame: TopFrame?) {
    guard let frame, view != .help else { return }
    if view == .tasks {
      firstTask = min(max(firstTask + distance, 0), max((frame.tasks?.places.count ?? 0) - 1, 0))
      return
    }
    let rows = rows(frame)
    guard !rows.isEmpty else { return }
    // The first key selects the first row.
    let place = rows.firstIndex { $0.id == selected } ?? (distance > 0 ? -1 : rows.count)
    let next = min(max(place + distance, 0), rows.count - 1)
    selected = rows[next].id
    if case .queue = view { view = .queue(rows[next].id) }
  }
}

/// A key of the terminal.
enum TerminalKey: Equatable {
  case character(Character)
  case up, down, left, right, pageUp, pageDown, home, end, enter, escape, backspace, other

  /// The keys in what was read from a terminal. Removes what it has understood; the rest is the start of a character.
  static func take(from bytes: inout [UInt8]) -> [TerminalKey] {
    var keys: [TerminalKey] = []
    var place = 0
    reading: while place < bytes.count {
      switch bytes[place] {
      case 0x1B where place + 1 < bytes.count && (bytes[place + 1] == 0x5B || bytes[place + 1] == 0x4F):
        var end = place + 2
        while end < bytes.count, !(0x40...0x7E).contains(bytes[end]) { end += 1 }
        guard end < bytes.count else { break reading }
        keys.append(named(bytes[place + 2...end]))
        place = end
      case 0x1B: keys.append(.escape)
      case 0x0D, 0x0A: keys.append(.enter)
      case 0x7F, 0x08: keys.append(.backspace)
      case ..<0x20: keys.append(.other)
      case let first:
        let length =
          switch first {
          case 0xC2..<0xE0: 2
          case 0xE0..<0xF0: 3
          case 0xF0..<0xF5: 4
          default: 1
          }
        let rest = bytes[(place + 1)...].prefix(length - 1).prefix { 0x80..<0xC0 ~= $0 }
        // A byte that belongs to no character must not take the next key with it.
        guard rest.count == length - 1 || rest.endIndex < bytes.count else { break reading }
        let isWhole = rest.count == length - 1 && (first < 0x80 || length > 1)
        let text = String(decoding: bytes[place..<rest.endIndex], as: UTF8.self)
        keys.append(isWhole ? text.first.map { .character($0) } ?? .other : .other)
        place = rest.endIndex - 1
      }
      place += 1
    }
    bytes.removeFirst(min(place, bytes.count))
    return keys
  }

  private static func named(_ sequence: ArraySlice<UInt8>) -> TerminalKey {
    switch String(decoding: sequence, as: UTF8.self) {
    case "A": .up
    case "B": .down
    case "C": .right
    case "D": .left
    case "H", "1~", "7~": .home
    case "F", "4~", "8~": .end
    case "5~": .pageUp
    case "6~": .pageDown
    default: .other
    }
  }
}
