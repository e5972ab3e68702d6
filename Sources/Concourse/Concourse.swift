// The module that programs import. It re-exports the engine's interface.
@_exported public import ConcourseEvents
@_exported public import ConcourseInspection
