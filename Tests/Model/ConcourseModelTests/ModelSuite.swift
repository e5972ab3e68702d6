import Testing

@testable import ConcourseModel

/// The explorations. The model's state is global, so these tests run one at a time.
@Suite(.serialized)
enum ModelSuite {}

/// Expects that every execution within the bound was explored, or as many as were asked for, and that none failed.
func expectComplete(_ result: ModelResult, location: SourceLocation = #_sourceLocation) {
  #expect(result.failure == nil && result.isExplored, "\(result)", sourceLocation: location)
}

/// The same for a sample, or for one execution.
func expectNoFailure(_ result: ModelResult, location: SourceLocation = #_sourceLocation) {
  #expect(result.failure == nil, "\(result)", sourceLocation: location)
}

/// Expects that the scenario fails with each fault.
func expectFound(
  _ faults: PlantedFault..., bound: Int = 1, stale: Int = 1, allowTime: Bool = false,
  location: SourceLocation = #_sourceLocation, _ scenario: @escaping () -> Void
) {
  // Two faults at once may hide each other.
  guard Mutation.current == nil else { return }
  for fault in faults {
    let result = Model.explore(
      "\(fault)", bound: bound, stale: stale, allowTime: allowTime, fault: fault, scenario)
    #expect(result.failure != nil, "\(result)", sourceLocation: location)
  }
}

/// Does something when a watched descriptor is ready.
final class WatchOwner: FileWatchOwner {
  private let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  func fileIsReady(_ watch: FileWatch) { body() }
}
