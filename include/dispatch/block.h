// Block objects: blocks with properties, that can be waited for, observed and cancelled.

#ifndef __DISPATCH_BLOCK__
#define __DISPATCH_BLOCK__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

#ifdef __BLOCKS__

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

__BEGIN_DECLS

DISPATCH_ENUM(dispatch_block_flags, unsigned long,
  // Alone, when submitted to a concurrent queue that the program made.
  DISPATCH_BLOCK_BARRIER = 0x1,
  // Takes nothing over from whoever submits it.
  DISPATCH_BLOCK_DETACHED = 0x2,
  // What it takes over is that of its making, not of its submission.
  DISPATCH_BLOCK_ASSIGN_CURRENT = 0x4,
  // Has no class of service of its own.
  DISPATCH_BLOCK_NO_QOS_CLASS = 0x8,
  // The queue's class comes first; how asynchronous items are by default.
  DISPATCH_BLOCK_INHERIT_QOS_CLASS = 0x10,
  // The block's class comes first; how synchronous items are by default.
  DISPATCH_BLOCK_ENFORCE_QOS_CLASS = 0x20
);

// A block object around a copy of `block`, to be released with `Block_release`. NULL for unknown flags.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_RETURNS_RETAINED_BLOCK DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_block_t
    dispatch_block_create(dispatch_block_flags_t flags, dispatch_block_t block);

// The same with a class of service and a relative priority of -15 to 0. NULL for values that are none.
DISPATCH_EXPORT DISPATCH_NONNULL4 DISPATCH_RETURNS_RETAINED_BLOCK DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_block_t
    dispatch_block_create_with_qos_class(dispatch_block_flags_t flags, dispatch_qos_class_t qos_class,
                                         int relative_priority, dispatch_block_t block);

// Runs the block here and now as if it were a block object with these flags. Traps for unknown flags.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NOTHROW void
dispatch_block_perform(dispatch_block_flags_t flags, DISPATCH_NOESCAPE dispatch_block_t block);

// Waits until the block object has run: 0, or non-zero when the time is over. Success comes once only; a
// second wait traps, and so does waiting for what runs more than once. So do this function and the next three
// for a block that is no block object.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW intptr_t
dispatch_block_wait(dispatch_block_t block, dispatch_time_t timeout);

// Submits `notification_block` when the block object has run for the first time, at once if it has. Traps if it
// ran more than once already.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_block_notify(dispatch_block_t block, dispatch_queue_t queue, dispatch_block_t notification_block);

// The block object's body will not be entered any more. It keeps its place in its queue, and who waits for it
// is told when that is reached.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_block_cancel(dispatch_block_t block);

// Non-zero after `dispatch_block_cancel`.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_WARN_RESULT DISPATCH_NOTHROW intptr_t
dispatch_block_testcancel(dispatch_block_t block);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif

#endif
