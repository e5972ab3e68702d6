// Groups: a count of what is not yet done, and those who wait for its end.

#ifndef __DISPATCH_GROUP__
#define __DISPATCH_GROUP__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

DISPATCH_DECL(dispatch_group);

__BEGIN_DECLS

// A group in which nothing is outstanding.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_group_t
dispatch_group_create(void);

#ifdef __BLOCKS__
// Enters the group, submits the block, and leaves after it has run.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_group_async(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL2 DISPATCH_NONNULL4 DISPATCH_NOTHROW void
dispatch_group_async_f(dispatch_group_t group, dispatch_queue_t queue, void *_Nullable context,
                       dispatch_function_t work);

// One more is outstanding. The group lives until all have left.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_group_enter(dispatch_group_t group);

// One less is outstanding; with the last, waiters wake and notifications are submitted. Traps if none is.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_group_leave(dispatch_group_t group);

// Waits until nothing is outstanding: 0, or non-zero when the time is over.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW intptr_t
dispatch_group_wait(dispatch_group_t group, dispatch_time_t timeout);

#ifdef __BLOCKS__
// Submits the block once, when nothing is outstanding; at once if that is so already.
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
