// The one place where the two builds differ. Re-exported, so that every row sees the runtime under
// test and no row names it.

#if CONCOURSE
  @_exported import Concourse
#else
  @_exported import Dispatch
#endif
