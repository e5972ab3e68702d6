import Glibc
import Testing

@testable import ConcourseRecording
@testable import ConcourseTool

@Suite("Timelines and traces")
struct TimelineTests {
  private func sample() throws -> RecordedRun {
    let reader = try RecordingReader(BytesInMemory(RecordingBuilder.sample.bytes))
    reader.poll()
    return reader.recording()
  }

  @Test("a start belongs to the submission of the same node, and what has not ended lasts to the end")
  func items() throws {
    let timeline = Timeline(try sample())
    let base = timeline.start
    #expect(timeline.items.map { $0.start - base } == [250, 550])
    #expect(timeline.items.map { $0.end - base } == [500, 550])
    #expect(timeline.items.map(\.hasEnded) == [true, false])
    #expect(timeline.items.map(\.submission) == [0, 1])
    #expect(timeline.submissions.map(\.item) == [0, 1, nil])
    #expect(timeline.waits.map { $0.end - $0.start } == [100])
    #expect(timeline.waits.first?.item == 0)
    #expect(timeline.depths[0xA0]?.map(\.value) == [1, 0, 1])
    #expect(timeline.running.map(\.value) == [1, 0, 1, 0, 1])
    #expect(timeline.threads == [100, 101])
    #expect(timeline.queues == [0xA0, 0xB0])
  }

  @Test("what has not ended lasts until the process is no longer watched")
  func openItems() throws {
    var recording = try sample()
    recording.end = recording.events.last!.time + 1_000_000
    let timeline = Timeline(recording)
    #expect(timeline.items.map(\.end).last == recording.end)
    recording.end = 0
    #expect(Timeline(recording).end == recording.events.last!.time)
  }

  @Test("an item whose end is lost ends at the loss, and not with the end of a later one")
  func lostEnd() throws {
    func event(_ time: UInt64, _ thread: UInt32, _ kind: RecordedEvent.Kind) -> RecordedEvent {
      RecordedEvent(time: time, thread: thread, kind: kind, node: 0, object: 0xA0, function: 0x10)
    }
    var recording = try sample()
    recording.events = [
      event(10, 1, .started), event(15, 2, .started), event(20, 1, .submitted), event(900, 1, .ended),
      event(950, 2, .ended), event(1000, 1, .started),
    ]
    recording.gaps = [RecordedGap(time: 900, thread: 1)]
    let timeline = Timeline(recording)
    #expect(timeline.items.map(\.end) == [20, 950, 1000])
    #expect(timeline.items.map(\.hasEnded) == [true, true, false])
    #expect(timeline.running.map(\.value) == [1, 2, 1, 0, 1])
  }

  @Test("of the last part, what had begun before begins with it, and what had ended is gone")
  func lastPart() throws {
    func event(_ time: UInt64, _ kind: RecordedEvent.Kind, _ function: UInt64) -> RecordedEvent {
      RecordedEvent(time: time, thread: 1, kind: kind, node: 0, object: 0xA0, function: function)
    }
    var recording = try sample()
    recording.events = [
      event(10, .started, 1), event(20, .started, 2), event(30, .ended, 2), event(900, .started, 3),
      event(910, .ended, 3), event(1000, .ended, 1),
    ]
    let last = recording.last(nanoseconds: 500)
    #expect(last.events.map(\.time) == [500, 900, 910, 1000])
    #expect(Timeline(last).items.map(\.function) == [1, 3])
    #expect(recording.last(nanoseconds: 5000).events == recording.events)
    #expect(recording.last(events: 3).events.map(\.time) == [900, 900, 910, 1000])
    recording.gaps = [RecordedGap(time: 20, thread: 1)]
    #expect(recording.last(nanoseconds: 500).events.map(\.time) == [900, 910, 1000])
  }

  @Test("a trace with a limit has the latest events that fit; its size is known before")
  func limit() throws {
    var recording = try sample()
    recording.events = (0..<50_000).map { place in
      RecordedEvent(
        time: UInt64(1000 + place), thread: 1, kind: place % 2 == 0 ? .started : .ended, node: 0,
        object: 0xA0,
        function: 0x10)
    }
    let encode: TraceSize.Encoding = { recording throws(RecordingFailure) in
      try TraceFormat.json.write(recording) { "f\($0)" }
    }
    let whole = try encode(recording).count
    let expected = try TraceSize.expected(recording, encode)
    #expect(expected > whole / 10 * 9 && expected < whole / 10 * 11, "\(expected), not \(whole)")
    var kept = recording
    let bytes = try TraceSize.write(&kept, limit: 1_000_000, encode)
    #expect(bytes.count <= 1_000_000 && bytes.count > 500_000)
    #expect(kept.events.last == recording.events.last && kept.events.count < 50_000)
    #expect(throws: RecordingFailure.self) { try TraceSize.write(&recording, limit: 100, encode) }
  }

  @Test("gzip compresses a trace, and what it makes is the trace again")
  func compressed() throws {
    let plain = try TraceFormat.json.write(try sample()) { "f\($0)" }
    let folder = try TemporaryFolder()
    let bytes = try #require(TraceFormat(path: "a.json.gz")).write(try sample()) { "f\($0)" }
    #expect(bytes.starts(with: [0x1F, 0x8B]) && bytes.count < plain.count)
    let path = try folder.write(bytes, to: "a.json.gz")
    let words = ["-c", "exec gzip -dc '\(path)'"].map { Array($0.utf8) }
    let text = try SpawnedProgram("/bin/sh", words, environment: ["PATH=/usr/bin:/bin"], input: STDIN_FILENO)
      .wait().text
    #expect(text == String(decoding: plain, as: UTF8.self))
  }

  @Test("overlapping items of a queue are in different lanes")
  func lanes() throws {
    var builder = RecordingBuilder()
    builder.hasTicks = false
    builder.rings = (0..<2).map { thread in
      .init(
        thread: UInt32(thread + 1),
        records: [
          .init(ticks: 10 + UInt64(thread), event: .started, object: 1),
          .init(ticks: 20, event: .ended, object: 1),
          .init(ticks: 30 + UInt64(thread) * 10, event: .started, object: 1),
          .init(ticks: 35 + UInt64(thread) * 10, event: .ended, object: 1),
        ])
    }
    let reader = try RecordingReader(BytesInMemory(builder.bytes))
    reader.poll()
    let timeline = Timeline(reader.recording())
    #expect(timeline.lanes(of: 1, timeline.itemsByQueue).map(\.count) == [3, 1])
  }

  @Test("a trace has the tracks, items, arrows, waits and counters")
  func json() throws {
    let text = String(decoding: TraceJSON.write(try sample()) { "f\($0)" }, as: UTF8.self)
    for piece in [
      #"{"ph":"M","pid":4711,"tid":101,"name":"thread_name","args":{"name":"worker"}}"#,
      #"{"ph":"M","pid":0,"tid":1,"name":"thread_name","args":{"name":"queue \"a\"\n"}}"#,
      #"{"ph":"X","pid":4711,"tid":101,"cat":"item","name":"f4112","ts":0.250,"dur":0.250,"args":{"queue":"queue \"a\"\n","waited (us)":0.150,"submitted by":"thread 100 (main)"}}"#,
      #"{"ph":"s","pid":4711,"tid":100,"cat":"flow","name":"submission","ts":0.100,"id":0}"#,
      #"{"ph":"f","pid":4711,"tid":101,"cat":"flow","name":"submission","ts":0.250,"bp":"e","id":0}"#,
      #"{"ph":"X","pid":4711,"tid":101,"cat":"wait","name":"wait: semaphore","ts":0.350,"dur":0.100,"args":{"for":"0xc0"}}"#,
      #"{"ph":"C","pid":4711,"tid":0,"cat":"counter","name":"running threads","ts":0.350,"args":{"threads":0}}"#,
    ] {
      #expect(text.contains(piece), "\(piece)\n\(text)")
    }
  }

  @Test("a delayed submission shows the caller and the delay, not the thread of the timers")
  func delayed() throws {
    var builder = RecordingBuilder.sample
    let first = RecordingBuilder.firstTicks
    func record(_ ticks: UInt64, _ event: RecordedEvent.Kind, node: UInt64 = 0) -> RecordingBuilder.Record {
      .init(ticks: first + ticks, event: event, node: node, object: 0xA0, function: 0x10)
    }
    builder.rings = [
      .init(
        thread: 100, records: [record(10, .started), record(100, .scheduled, node: 7), record(200, .ended)]),
      .init(thread: 101, records: [record(2000, .submitted, node: 7)]),
      .init(thread: 102, records: [record(2100, .started, node: 7), record(2200, .ended, node: 7)]),
    ]
    let reader = try RecordingReader(BytesInMemory(builder.bytes))
    reader.poll()
    let timeline = Timeline(reader.recording())
    let submission = try #require(timeline.submissions.first)
    #expect(submission.time - submission.call == 950)
    #expect(submission.thread == 100 && submission.submitter == 0 && submission.item == 1)
    let text = String(decoding: TraceJSON.write(reader.recording()) { "f\($0)" }, as: UTF8.self)
    for piece in [
      #""waited (us)":0.050,"delayed (us)":0.950,"submitted by":"f16 on queue"#,
      #"{"ph":"s","pid":4711,"tid":100,"cat":"flow","name":"submission","ts":0.045,"id":0}"#,
    ] {
      #expect(text.contains(piece), "\(text)")
    }
  }

  @Test("items of which only a thunk is known have the label of their queue, from the submission to the end")
  func thunks() throws {
    #expect(Demangler.isThunk("$sIeg_IyB_TR") && !Demangler.isThunk("$s4main5startyyF"))
    var recording = try sample()
    let before = Timeline(recording)
    // The first item starts on another object of its queue: classes of global queues have several.
    for place in recording.events.indices
    where recording.events[place].thread == 101 && recording.events[place].object == 0xA0 {
      recording.events[place].object = 0xC0
    }
    let labels = recording.labelItems { $0 == 0x1010 }
    #expect(Set(labels.values) == ["queue \"a\"\n"])
    let timeline = Timeline(recording)
    #expect(timeline.items.map(\.submission) == before.items.map(\.submission))
    #expect(timeline.items.map(\.end) == before.items.map(\.end))
    #expect(timeline.items.map { labels[$0.function] } == ["queue \"a\"\n", nil])
    #expect(timeline.submissions.map { labels[$0.function] } == ["queue \"a\"\n", nil, "queue \"a\"\n"])
    #expect(timeline.items[1].function == 0x1020)
  }

  @Test("a thunk of a delayed item, of one without a submission, and of one whose start is lost")
  func lonelyThunks() throws {
    func event(_ time: UInt64, _ kind: RecordedEvent.Kind, node: UInt64 = 0, queue: UInt64 = 0xA0)
      -> RecordedEvent
    {
      RecordedEvent(time: time, thread: 1, kind: kind, node: node, object: queue, function: 0x10)
    }
    var recording = try sample()
    recording.events = [
      event(1, .ended), event(10, .scheduled, node: 7), event(20, .submitted, node: 7, queue: 0xB0),
      event(30, .started, node: 7), event(31, .started, queue: 0xB0), event(32, .ended, queue: 0xB0),
      event(40, .ended), event(50, .started), event(60, .parked), event(70, .ended),
    ]
    let labels = recording.labelItems { $0 == 0x10 }
    let a = "queue \"a\"\n"
    #expect(
      recording.events.map { labels[$0.function] }
        == [a, a, a, a, "queue 0xb0", "queue 0xb0", a, a, nil, a])
    #expect(Timeline(recording).submissions.map(\.call) == [10])
  }

  @Test("a page and a report say what is lost, and what to do; nothing if nothing is")
  func losses() throws {
    var recording = try sample()
    #expect(recording.lossNotice == nil)
    #expect(
      String(decoding: TracePage.write(recording) { "f\($0)" }, as: UTF8.self).contains(#""notice":"""#))
    recording.overwritten = 12
    let said = "12 events are lost"
    for text in [
      String(decoding: TracePage.write(recording) { "f\($0)" }, as: UTF8.self),
      RecordingText.text(recording) { "f\($0)" },
    ] {
      #expect(text.contains(said) && text.contains("CONCOURSE_RECORDER=1000000"), "\(text.suffix(3000))")
    }
  }

  @Test("a page has the numbers of the items, and texts that cannot end its script")
  func page() throws {
    var recording = try sample()
    recording.names[0].text = "</script>"
    let text = String(decoding: TracePage.write(recording) { "f\($0)" }, as: UTF8.self)
    #expect(text.contains(#""items":2,"waits":1,"duration":550,"lost":0,"program":"program""#))
    #expect(text.contains(#""queues":["\u003c/script>","queue 0xb0"],"functions":["f4112","f4128"]"#))
    #expect(text.contains(#"["Parallelism","0.2 threads on average, 1 at most"]"#), "\(text.prefix(9000))")
    #expect(!["^META^", "^COLUMNS^", "^SCRIPT^"].contains { text.contains($0) })
    #expect(text.hasSuffix("</html>\n"))
    // The script is in the page as it was written.
    #expect(text.contains(String(decoding: PackageResources.trace_js, as: UTF8.self)))
    #expect(Base64.encode(Array("any carnal pleas".utf8)) == Array("YW55IGNhcm5hbCBwbGVhcw==".utf8))
  }

  @Test("submissions whose starts were lost are not counted as waiting")
  func lostStarts() throws {
    var builder = RecordingBuilder()
    let first = RecordingBuilder.firstTicks
    func submitted(_ ticks: UInt64, _ node: UInt64) -> RecordingBuilder.Record {
      .init(ticks: first + ticks, event: .submitted, node: node, object: 0xA0)
    }
    // The node 1 is used twice; the worker's ring has only its latest events.
    builder.rings = [
      .init(thread: 100, records: [submitted(10, 1), submitted(20, 2), submitted(30, 1), submitted(500, 3)]),
      .init(
        thread: 101, records: (0..<64).map { .init(ticks: first + 100 + $0, event: .parked) }, gone: 1000),
    ]
    func levels() throws -> [Int]? {
      let reader = try RecordingReader(BytesInMemory(builder.bytes))
      reader.poll()
      return Timeline(reader.recording()).depths[0xA0]?.map(\.value)
    }
    #expect(try levels() == [1, 2, 1, 2, 0, 1])
    builder.rings[1].gone = 0
    builder.rings[1].records.removeLast()
    #expect(try levels() == [1, 2, 1, 2, 3])
  }

  @Test("a wait or an item whose end was lost ends at the thread's next event")
  func lostEnds() throws {
    var builder = RecordingBuilder.sample
    let first = RecordingBuilder.firstTicks
    builder.rings[1].records = [
      .init(ticks: first + 500, event: .started, node: 1, object: 0xA0, function: 0x1010),
      .init(ticks: first + 700, event: .waitBegan, node: 4, object: 0xC0),
      .init(ticks: first + 900, event: .waitBegan, node: 4, object: 0xC0),
      .init(ticks: first + 1000, event: .parked),
    ]
    let reader = try RecordingReader(BytesInMemory(builder.bytes))
    reader.poll()
    let timeline = Timeline(reader.recording())
    #expect(timeline.waits.map { $0.end - timeline.start } == [450, 500])
    #expect(timeline.items.map { $0.end - timeline.start } == [500])
    #expect(timeline.items.allSatisfy(\.hasEnded) && timeline.waits.allSatisfy(\.hasEnded))
    #expect(timeline.running.last?.value == 0)
  }

  private static let protoc = ["/usr/bin/protoc", "/usr/local/bin/protoc"].first { (path: String) in
    access(path, X_OK) == 0
  }

  /// The parts of Perfetto's messages that are used.
  private static let messages = """
    syntax = "proto2";
    message Trace { repeated TracePacket packet = 1; }
    message TracePacket {
      optional uint64 timestamp = 8; optional uint32 trusted_packet_sequence_id = 10;
      optional TrackEvent track_event = 11; optional InternedData interned_data = 12;
      optional uint32 sequence_flags = 13; optional TrackDescriptor track_descriptor = 60;
    }
    message TrackDescriptor {
      optional uint64 uuid = 1; optional string name = 2; optional ProcessDescriptor process = 3;
      optional ThreadDescriptor thread = 4; optional uint64 parent_uuid = 5; optional CounterDescriptor counter = 8;
    }
    message ProcessDescriptor { optional int32 pid = 1; optional string process_name = 6; }
    message ThreadDescriptor { optional int32 pid = 1; optional int32 tid = 2; optional string thread_name = 5; }
    message CounterDescriptor {}
    message InternedData { repeated EventName event_names = 2; }
    message EventName { optional uint64 iid = 1; optional string name = 2; }
    message TrackEvent {
      enum Type { NONE = 0; TYPE_SLICE_BEGIN = 1; TYPE_SLICE_END = 2; TYPE_INSTANT = 3; TYPE_COUNTER = 4; }
      repeated DebugAnnotation debug_annotations = 4; optional Type type = 9; optional uint64 name_iid = 10;
      optional uint64 track_uuid = 11; repeated string categories = 22; optional int64 counter_value = 30;
      repeated fixed64 flow_ids = 47; repeated fixed64 terminating_flow_ids = 48;
    }
    message DebugAnnotation {
      optional uint64 uint_value = 3; optional string string_value = 6; optional string name = 10;
    }
    """

  @Test("protoc decodes a Perfetto trace, with no field unknown", .enabled(if: protoc != nil, "needs protoc"))
  func decoded() throws {
    let folder = try TemporaryFolder()
    try folder.write(Array(Self.messages.utf8), to: "trace.proto")
    try folder.write(TracePerfetto.write(try sample()) { "f\($0)" }, to: "trace.pftrace")
    let command = "cd \(folder.path) && \(Self.protoc!) --decode=Trace trace.proto < trace.pftrace"
    let words = ["-c", command].map { Array($0.utf8) }
    let text = try SpawnedProgram("/bin/sh", words, environment: [], input: STDIN_FILENO).wait().text
    func count(_ line: String) -> Int { text.split(separator: "\n").count { $0.drop { $0 == " " } == line } }
    #expect(count("type: TYPE_SLICE_BEGIN") == 5 && count("type: TYPE_SLICE_END") == 5, "\(text)")
    #expect(count("flow_ids: 1") == 1 && count("terminating_flow_ids: 1") == 1)
    #expect(count("thread_name: \"main\"") == 1 && count("process_name: \"program\"") == 1)
    // A field that the messages do not have is shown by its number.
    #expect(!text.split(separator: "\n").contains { $0.first { $0 != " " }?.isNumber == true })
  }

  @Test("a Perfetto trace is a sequence of packets")
  func perfetto() throws {
    let bytes = TracePerfetto.write(try sample()) { "f\($0)" }
    var place = 0
    var packets = 0
    while place < bytes.count {
      #expect(bytes[place] == 0x0A)
      var length = 0
      var shift = 0
      repeat {
        place += 1
        length |= Int(bytes[place] & 0x7F) << shift
        shift += 7
      } while bytes[place] & 0x80 != 0
      place += 1 + length
      packets += 1
    }
    #expect(place == bytes.count)
    // Tracks: process, queues, running threads, 2 threads, 2 queues with their depths. Events: 2 items and 1 wait on
    // threads, 2 items on queues, with beginning and end; 2 arrows; 4 + 1 depths, 5 numbers of threads.
    #expect(packets == 9 + 10 + 2 + 5 + 5)
  }

  @Test("the text of a recording tells what each thread was in at the end")
  func text() throws {
    let text = RecordingText.text(try sample()) { "f\($0)" }
    #expect(text.contains("Recording of process 4711 (program): 10 events of 2 threads in 550 ns"), "\(text)")
    #expect(
      text.contains("  101 worker          in f4128 on queue 0xb0, since 0 ns before the last event"),
      "\(text)")
    #expect(text.contains("  100 main            in no item"), "\(text)")
  }
}

@Suite("Options of concourse trace")
struct TraceOptionsTests {
  @Test("processes, programs and recordings")
  func targets() {
    #expect(TraceOptions.parse(["12"]) == .options(TraceOptions(target: .process(12))))
    #expect(TraceOptions.parse(["--", "12"]) == .options(TraceOptions(target: .program(1))))
    #expect(TraceOptions.parse(["ls", "-o"]) == .options(TraceOptions(target: .program(0))))
    #expect(
      TraceOptions.parse(["--seconds", "2.5", "-o", "x.json", "12"])
        == .options(TraceOptions(target: .process(12), seconds: 2.5, output: "x.json")))
    #expect(TraceOptions.parse(["--recording=f"]) == .options(TraceOptions(target: .recording("f"))))
    let last = TraceOptions(target: .process(12), last: 500_000_000, limit: 50_000_000)
    #expect(TraceOptions.parse(["12", "--last=500ms", "--limit", "50M"]) == .options(last))
    #expect(TraceOptions.duration("2") == 2_000_000_000 && TraceOptions.duration("1.5s") == 1_500_000_000)
    #expect(["", "-1s", "nan", "inf", "5 s", "1h"].allSatisfy { TraceOptions.duration($0) == nil })
    #expect(TraceOptions.size("800K") == 800_000 && TraceOptions.size("1.5G") == 1_500_000_000)
    #expect(TraceOptions.size("20MB") == 20_000_000)
    #expect(["", "0", "-1M", "nanM", "5T", "B"].allSatisfy { TraceOptions.size($0) == nil })
    let page = TraceOptions(target: .process(12), output: "x.html")
    #expect(TraceOptions.parse(["12", "-o", "x.html"]) == .options(page))
    #expect(TraceOptions.parse(["--help"]) == .help)
  }

  @Test("what is wrong is said in one line")
  func errors() {
    #expect(TraceOptions.parse([]) == .unusable("no process and no program given"))
    #expect(
      TraceOptions.parse(["--seconds", "no", "1"])
        == .unusable("'no' is not a number of seconds from 0.001 to 86400"))
    #expect(TraceOptions.parse(["-o"]) == .unusable("-o needs a value"))
    #expect(TraceOptions.parse(["--other", "1"]) == .unusable("unknown option '--other'"))
    #expect(
      TraceOptions.parse(["-o", "x.txt", "1"])
        == .unusable("the name of the output must end in .json, .json.gz, .pftrace or .html"))
    #expect(
      TraceOptions.parse(["--recording", "f", "1"])
        == .unusable("only one process, program or recording can be given"))
  }
}
