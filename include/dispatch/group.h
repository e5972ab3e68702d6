// Groups: counters of outstanding work, with waits and notifications for zero.

#ifndef __DISPATCH_GROUP__
#define __DISPATCH_GROUP__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

DISPATCH_DECL(dispatch_group);

__BEGIN_DECLS

// Returns an empty group.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_group_t
dispatch_group_create(void);

#ifdef __BLOCKS__
// Enters the group, submits the block, and leaves the group after the block has run.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_group_async(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL2 DISPATCH_NONNULL4 DISPATCH_NOTHROW void
dispatch_group_async_f(dispatch_group_t group, dispatch_queue_t queue, void *_Nullable context,
                       dispatch_function_t work);

// Increments the count of outstanding work. The group stays alive until the count is zero.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_group_enter(dispatch_group_t group);

// Decrements the count. At zero, waiters wake and notifications are submitted. Traps if the count is zero already.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_group_leave(dispatch_group_t group);

// Waits until the count is zero. Returns 0, or non-zero after the timeout.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW intptr_t
dispatch_group_wait(dispatch_group_t group, dispatch_time_t timeout);

#ifdef __BLOCKS__
// Submits the block once the count is zero; at once if it is zero already.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_group_notify(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL2 DISPATCH_NONNULL4 DISPATCH_NOTHROW void
dispatch_group_notify_f(dispatch_group_t group, dispatch_queue_t queue, void *_Nullable context,
                        dispatch_function_t work);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
