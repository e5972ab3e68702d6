// Counting semaphores.

#ifndef __DISPATCH_SEMAPHORE__
#define __DISPATCH_SEMAPHORE__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

DISPATCH_DECL(dispatch_semaphore);

__BEGIN_DECLS

// Returns a semaphore with an initial value. NULL if the value is negative. The last release traps if the value is
// below the initial one.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_semaphore_t
    dispatch_semaphore_create(intptr_t value);

// Decrements the value; waits while it is zero. Returns 0, or non-zero after the timeout, which leaves the value
// unchanged.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW intptr_t
dispatch_semaphore_wait(dispatch_semaphore_t dsema, dispatch_time_t timeout);

// Increments the value. Returns non-zero if the call woke a thread.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW intptr_t
dispatch_semaphore_signal(dispatch_semaphore_t dsema);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
