/// The file that the plugin `ConcourseNames` adds to a module, so that Concourse's names win over those of
/// the toolchain's Dispatch, which Foundation re-exports: what a module declares itself hides what it
/// imports.
enum NamesFile {
  /// Every public type whose name also exists in the toolchain's Dispatch. A test compares the list with the
  /// two modules.
  static let types = [
    "DispatchData", "DispatchDataIterator", "DispatchGroup", "DispatchIO", "DispatchObject",
    "DispatchPredicate", "DispatchQoS", "DispatchQueue", "DispatchSemaphore", "DispatchSource",
    "DispatchSourceHandler", "DispatchSourceProtocol", "DispatchSourceRead", "DispatchSourceSignal",
    "DispatchSourceTimer", "DispatchSourceUserDataAdd", "DispatchSourceUserDataOr",
    "DispatchSourceUserDataReplace", "DispatchSourceWrite", "DispatchSpecificKey", "DispatchTime",
    "DispatchTimeInterval", "DispatchTimeoutResult", "DispatchWallTime", "DispatchWorkItem",
    "DispatchWorkItemFlags",
  ]

  /// The functions of which the same is true. Operators are told apart by their operands.
  static let functions = ["dispatchMain()", "dispatchPrecondition(condition:file:line:)"]

  /// The whole text.
  static var text: String {
    header + types.map { "typealias \($0) = Concourse::\($0)\n" }.joined() + functionBodies
  }

  private static let header = """
    // Made by the plugin ConcourseNames: these names mean Concourse's in this module, also where Foundation
    // is imported. Internal: a public interface spells them Concourse::DispatchQueue and so on.
    import Concourse


    """

  /// A function hides another only if their types are the same. `dispatchPrecondition` takes a predicate of
  /// ours, so it would merely be one more to choose from, and `.onQueue(.main)` fits all of them; a
  /// constant hides functions of any type.
  private static let functionBodies = """

    func dispatchMain() -> Never { Concourse::dispatchMain() }

    struct ConcoursePrecondition: Sendable {
      func callAsFunction(
        condition: @autoclosure () -> Concourse::DispatchPredicate, file: StaticString = #file,
        line: UInt = #line
      ) {
        Concourse::dispatchPrecondition(condition: condition(), file: file, line: line)
      }
    }

    let dispatchPrecondition = ConcoursePrecondition()

    """
}
