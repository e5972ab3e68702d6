import Testing

@testable import ConcourseModel

/// The explorations. The model's state is global, so these tests run one at a time.
@Suite(.serialized)
enum ModelSuite {}

/// Expects that every execution within the bound was explored, and that none failed.
func expectComplete(_ result: ModelResult, location: SourceLocation = #_sourceLocation) {
  #expect(result.failure == nil && result.isComplete, "\(result)", sourceLocation: location)
}

/// The same for a sample, or for one execution.
func expectNoFailure(_ result: ModelResult, location: SourceLocation = #_sourceLocation) {
  #expect(result.failure == nil, "\(result)", sourceLocation: location)
}
