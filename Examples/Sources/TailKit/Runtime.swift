// File-system-object sources are Concourse's alone on Linux, so this program has no build for the
// toolchain's Dispatch as `dupes` has.
@_exported import Concourse
