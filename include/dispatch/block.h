// Block objects: blocks with properties, which can be awaited, observed and cancelled.

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
  // On a private concurrent queue, the block runs alone.
  DISPATCH_BLOCK_BARRIER = 0x1,
  // Inherits nothing from its submitter.
  DISPATCH_BLOCK_DETACHED = 0x2,
  // Inherits from its creator instead of its submitter.
  DISPATCH_BLOCK_ASSIGN_CURRENT = 0x4,
  // Has no quality-of-service class of its own.
  DISPATCH_BLOCK_NO_QOS_CLASS = 0x8,
  // The queue's class takes precedence. Default for asynchronous items.
  DISPATCH_BLOCK_INHERIT_QOS_CLASS = 0x10,
  // The block's class takes precedence. Default for synchronous items.
  DISPATCH_BLOCK_ENFORCE_QOS_CLASS = 0x20
);

// Returns a block object with a copy of `block`; release it with `Block_release`. NULL for unknown flags.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_RETURNS_RETAINED_BLOCK DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_block_t
    dispatch_block_create(dispatch_block_flags_t flags, dispatch_block_t block);

// Also sets a class and a relative priority from -15 to 0. NULL for invalid values.
DISPATCH_EXPORT DISPATCH_NONNULL4 DISPATCH_RETURNS_RETAINED_BLOCK DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_block_t
    dispatch_block_create_with_qos_class(dispatch_block_flags_t flags, dispatch_qos_class_t qos_class,
                                         int relative_priority, dispatch_block_t block);

// Runs the block at once, as a block object with these flags would run. Traps for unknown flags.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NOTHROW void
dispatch_block_perform(dispatch_block_flags_t flags, DISPATCH_NOESCAPE dispatch_block_t block);

// Waits until the block object has run. Returns 0, or non-zero after the timeout. Only one wait may succeed; a second
// one traps, and so does waiting for a block object that runs more than once. This function and the next three trap for
// a plain block.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW intptr_t
dispatch_block_wait(dispatch_block_t block, dispatch_time_t timeout);

// Submits `notification_block` after the block object's first run, or at once if it has run. Traps if it has run more
// than once.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_block_notify(dispatch_block_t block, dispatch_queue_t queue, dispatch_block_t notification_block);

// Prevents future runs of the block object's body. The block object keeps its place in the queue; waits for it end when
// the queue reaches it.
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
