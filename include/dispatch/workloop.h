// Workloops: queues that run one item at a time, by priority.

#ifndef __DISPATCH_WORKLOOP__
#define __DISPATCH_WORKLOOP__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

// May be the target of serial queues, whose items keep their order. `dispatch_sync` on the workloop itself traps; use
// `dispatch_async_and_wait`.
DISPATCH_DECL_SUBCLASS(dispatch_workloop, dispatch_queue);

__BEGIN_DECLS

DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_workloop_t
    dispatch_workloop_create(const char *_Nullable label);

// Returns an inactive workloop, which can still be configured. Submitting items before `dispatch_activate` traps.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_workloop_t
    dispatch_workloop_create_inactive(const char *_Nullable label);

// No effect: Linux has no autorelease pools. Traps if the workloop is active.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_workloop_set_autorelease_frequency(dispatch_workloop_t workloop,
                                            dispatch_autorelease_frequency_t frequency);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
