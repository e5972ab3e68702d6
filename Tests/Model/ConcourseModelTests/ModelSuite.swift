import Foundation
import Testing

/// Everything that explores. The model's state is global, so its tests run one at a time.
///
/// Sanitizers follow stacks and shadow memory per system thread and take a coroutine switch for an
/// overflow or a race; scripts that build with one set CONCOURSE_SANITIZER, and these tests then rest.
@Suite(
  .serialized,
  .disabled(
    if: ProcessInfo.processInfo.environment["CONCOURSE_SANITIZER"] != nil,
    "sanitizers cannot follow coroutine stacks"))
enum ModelSuite {}
