// Workloops: queues that run one item at a time, the one with the highest priority first.

#ifndef __DISPATCH_WORKLOOP__
#define __DISPATCH_WORKLOOP__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

// May be the target of serial queues, whose items keep their order. `dispatch_sync` on a workloop itself traps;
// there is `dispatch_async_and_wait`.
DISPATCH_DECL_SUBCLASS(dispatch_workloop, dispatch_queue);

__BEGIN_DECLS

DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_workloop_t
    dispatch_workloop_create(const char *_Nullable label);

// One that can be configured first. Items are submitted after `dispatch_activate` only, earlier ones trap.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_workloop_t
    dispatch_workloop_create_inactive(const char *_Nullable label);

// Remembered only. Traps if the workloop is active.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_workloop_set_autorelease_frequency(dispatch_workloop_t workloop,
                                            dispatch_autorelease_frequency_t frequency);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
