// The module that programs import: the whole interface of the engine.
@_exported public import ConcourseRuntime
