/// Sources, channels and timers.
extension EngineReader {
  mutating func readSources() throws(EngineTypes.Missing) {
    for core in objects["SourceCore"] ?? [] {
      let state = core &+ (try types.offset("SourceCore", "state"))
      let backend = memory.word(core &+ (try types.offset("SourceCore", "backend"))) ?? 0
      let kind: UInt8 = memory.number(at: core &+ (try types.offset("SourceCore", "kind"))) ?? 0
      let queue = memory.word(core &+ (try types.offset("SourceCore", "target"))) ?? 0
      let kinds = types["SourceKind"]?.cases ?? []
      // Otherwise the memory is in use for something else by now.
      guard kinds.indices.contains(Int(kind)), object(queue, isA: "DispatchQueue") else { continue }
      func flag(_ name: String) throws(EngineTypes.Missing) -> Bool {
        (memory.number(at: state &+ (try types.offset("SourceState", name)), as: UInt8.self) ?? 0) & 1 != 0
      }
      var source = SourceInfo(
        address: core, backend: backend,
        kind: kinds[Int(kind)],
        handle: Int(truncatingIfNeeded: memory.word(core &+ (try types.offset("SourceCore", "handle"))) ?? 0),
        isActive: try flag("isActive"), isCancelled: try flag("isCancelled"),
        suspensions: memory.count(at: state &+ (try types.offset("SourceState", "suspensions"))),
        isVisiting: try flag("visitIsDue"),
        pending: memory.word(core &+ (try types.offset("SourceCore", "pending"))) ?? 0,
        queue: queue, dueIn: nil,
        handlerThread: memory.number(at: core &+ (try types.offset("SourceCore", "handlerThread"))) ?? 0)
      if object(backend, isA: "TimerBackend"), source.isActive && !source.isCancelled {
        let schedule = backend &+ (try types.offset("TimerBackend", "schedule"))
        let clock: UInt8 = memory.number(at: schedule &+ (try types.offset("TimerSchedule", "clock"))) ?? 2
        let next = memory.word(schedule &+ (try types.offset("TimerSchedule", "next"))) ?? .max
        source.dueIn = distance(to: next, isWall: clock == 1, isNever: clock > 1)
      }
      snapshot.sources.append(source)
    }
  }

  private func distance(to time: UInt64, isWall: Bool, isNever: Bool = false) -> Int64? {
    guard !isNever, time < 1 << 63, let now = process.now else { return nil }
    return Int64(time) - Int64(isWall ? WallClock.now : now)
  }

  mutating func readChannels() throws(EngineTypes.Missing) {
    for entry in objects["DescriptorEntry"] ?? [] {
      let state = entry &+ (try types.offset("DescriptorEntry", "state"))
      let channels = memory.word(state &+ (try types.offset("DescriptorState", "openChannels"))) ?? 0
      let unfinished = memory.word(state &+ (try types.offset("DescriptorState", "unfinished"))) ?? 0
      snapshot.channels.append(
        ChannelInfo(
          channels: Int(truncatingIfNeeded: channels), unfinished: Int(truncatingIfNeeded: unfinished)))
    }
  }

  /// Delayed submissions and timers that are set, of both clocks and all shards.
  mutating func readTimers() {
    var info = TimersInfo(count: 0)
    for table in objects["TimerTable"] ?? [] { addLists(of: table) }
    for list in snapshot.timerLists.compactMap({ $0.list(in: memory) }) {
      info.count = min(info.count + Int(list.count - list.first), 1 << 40)
      if let time = memory.word(list.array &+ TimerList.header &+ list.first &* TimerList.stride),
        let left = distance(to: time, isWall: list.isWall)
      {
        info.nextIn = min(info.nextIn ?? .max, left)
      }
    }
    if info.count > 0 { snapshot.timers = info }
  }

  private mutating func addLists(of table: UInt64) {
    guard let type = types["TimerTable"] else { return }
    for (name, isWall) in [("uptime", false), ("wall", true)] {
      guard let offset = type.fields[name] else { continue }
      // `TimerTable.Side`: whether it is for the wall clock; the heap's array; the line's array and its first index.
      let side = table &+ offset
      snapshot.timerLists += [
        .init(isWall: isWall, array: side &+ 8, first: nil),
        .init(isWall: isWall, array: side &+ 16, first: side &+ 24),
      ]
    }
  }
}
