import Foundation
import Testing

@testable import ConcourseModel

/// The explorations. The model's state is global, so these tests run one at a time.
///
/// Sanitizers track stacks and shadow memory per system thread and mistake a coroutine switch for an overflow or a
/// race. Scripts that build with one set CONCOURSE_SANITIZER, which disables these tests.
@Suite(
  .serialized,
  .disabled(
    if: ProcessInfo.processInfo.environment["CONCOURSE_SANITIZER"] != nil,
    "sanitizers cannot follow coroutine stacks"))
enum ModelSuite {}

/// Expects that every execution within the bound was explored, and that none failed.
func expectComplete(_ result: ModelResult, location: SourceLocation = #_sourceLocation) {
  #expect(result.failure == nil && result.isComplete, "\(result)", sourceLocation: location)
}

/// The same for a sample, or for one execution.
func expectNoFailure(_ result: ModelResult, location: SourceLocation = #_sourceLocation) {
  #expect(result.failure == nil, "\(result)", sourceLocation: location)
}
