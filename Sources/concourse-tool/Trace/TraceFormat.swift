import ConcourseRecording

/// How a trace is written.
enum TraceFormat {
  case json, compressedJSON, pftrace, html

  /// As the ending of the path says; nil if it is another.
  init?(path: String) {
    let endings: [(String, TraceFormat)] = [
      (".json.gz", .compressedJSON), (".json", .json), (".pftrace", .pftrace), (".html", .html),
    ]
    guard let format = endings.first(where: { path.hasSuffix($0.0) })?.1 else { return nil }
    self = format
  }

  func write(
    _ recording: RecordedRun, _ tasks: TasksAtEnd? = nil, functions: @escaping (UInt64) -> String
  ) throws(RecordingFailure) -> [UInt8] {
    switch self {
    case .json: return TraceJSON.write(recording, tasks, functions: functions)
    case .compressedJSON: return try Gzip.compress(TraceJSON.write(recording, tasks, functions: functions))
    case .pftrace: return TracePerfetto.write(recording, functions: functions)
    case .html: return TracePage.write(recording, tasks: tasks, functions: functions)
    }
  }
}
