// The only file that says which Dispatch this program runs on. The other files just use DispatchQueue and
// its companions, whose names and behaviour are the same in both modules.

#if INCUMBENT
  @_exported import Dispatch
#else
  @_exported import Concourse
#endif
