import ConcourseRecording
import Glibc

/// `concourse report`: what a process waits for. The process need not cooperate.
enum ReportCommand: Command {
  static let summary = "prints what a process on Concourse waits for"

  static func run(_ options: ReportOptions, _ arguments: [String]) -> Int32 {
    do {
      let process: TargetProcess
      switch options.target {
      case .process(let id): process = try TargetProcess.live(id)
      case .core(let path): process = try CoreFile.open(path)
      case .recording(let path): return show(path, options)
      }
      let report = try Report.make(of: process)
      Terminal.printLine(
        options.isJSON
          ? ReportJSON.text(report, showsTasks: options.showsTasks)
          : ReportText.text(
            report, showsAll: options.showsAll, showsTasks: options.showsTasks,
            isColoured: isatty(STDOUT_FILENO) != 0 && getenv("NO_COLOR") == nil))
      return 0
    } catch {
      Terminal.printError(error.reason)
      return RunCommand.Status.failure
    }
  }

  /// Prints what a flight recorder has left.
  private static func show(_ path: String, _ options: ReportOptions) -> Int32 {
    do throws(RecordingFailure) {
      var recording = try TraceCommand.reader(of: path).recording()
      let names = FunctionNames(recording)
      names.nameQueues(&recording)
      names.nameThunks(&recording)
      Terminal.printLine(
        RecordingText.text(recording, showsAll: options.showsAll) { names.name(of: $0) })
      return 0
    } catch {
      Terminal.printError(error.reason)
      return RunCommand.Status.failure
    }
  }
}
