// Points in time. A `dispatch_time_t` includes its clock: the uptime clock, which stops while the machine sleeps, or
// the wall clock. The encoding is private.

#ifndef __DISPATCH_TIME__
#define __DISPATCH_TIME__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

#include <stdint.h>

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

#undef NSEC_PER_SEC
#define NSEC_PER_SEC 1000000000ull
#undef NSEC_PER_MSEC
#define NSEC_PER_MSEC 1000000ull
#undef NSEC_PER_USEC
#define NSEC_PER_USEC 1000ull
#undef USEC_PER_SEC
#define USEC_PER_SEC 1000000ull
#undef MSEC_PER_SEC
#define MSEC_PER_SEC 1000ull

__BEGIN_DECLS

struct timespec;

typedef uint64_t dispatch_time_t;

__extension__ enum {
  // The present on the wall clock.
  DISPATCH_WALLTIME_NOW = ~1ull
};

#define DISPATCH_TIME_NOW (0ull)
#define DISPATCH_TIME_FOREVER (~0ull)

// Returns `when` plus `delta` nanoseconds, on the clock of `when`. DISPATCH_TIME_NOW is on the uptime clock. Forever
// stays forever. Overflow yields DISPATCH_TIME_FOREVER; underflow yields the clock's earliest time.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_time_t
dispatch_time(dispatch_time_t when, int64_t delta);

// Returns a wall-clock time plus `delta` nanoseconds; NULL means the present.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_time_t
dispatch_walltime(const struct timespec *_Nullable when, int64_t delta);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
