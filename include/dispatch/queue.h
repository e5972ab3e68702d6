// Queues: FIFO lists of items, which threads of the library run.

#ifndef __DISPATCH_QUEUE__
#define __DISPATCH_QUEUE__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

#if __has_include(<sys/qos.h>)
#include <sys/qos.h>
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

// Any queue; a permanent, shared queue; a queue that runs one item at a time; the main thread's queue; a queue that
// runs items concurrently.
DISPATCH_DECL(dispatch_queue);
DISPATCH_DECL_SUBCLASS(dispatch_queue_global, dispatch_queue);
DISPATCH_DECL_SUBCLASS(dispatch_queue_serial, dispatch_queue);
DISPATCH_DECL_SUBCLASS(dispatch_queue_main, dispatch_queue_serial);
DISPATCH_DECL_SUBCLASS(dispatch_queue_concurrent, dispatch_queue);

DISPATCH_DECL(dispatch_queue_attr);

#if __has_include(<sys/qos.h>)
typedef qos_class_t dispatch_qos_class_t;
#else
typedef unsigned int dispatch_qos_class_t;

// Quality-of-service classes, highest first. A program with its own definitions of these names defines
// DISPATCH_NO_QOS_CLASS_NAMES.
#if !defined(DISPATCH_NO_QOS_CLASS_NAMES) && !defined(QOS_CLASS_DEFAULT)
enum {
  QOS_CLASS_USER_INTERACTIVE = 0x21,
  QOS_CLASS_USER_INITIATED = 0x19,
  QOS_CLASS_DEFAULT = 0x15,
  QOS_CLASS_UTILITY = 0x11,
  QOS_CLASS_BACKGROUND = 0x09,
  QOS_CLASS_MAINTENANCE = 0x05,
  QOS_CLASS_UNSPECIFIED = 0x00
};
// The lowest relative priority within a class; the highest is 0.
#define QOS_MIN_RELATIVE_PRIORITY (-15)
#endif
#endif

__BEGIN_DECLS

// --- Submission ---

#ifdef __BLOCKS__
// Appends an item and returns. Copies the block; the queue stays alive until the item has run.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_async(dispatch_queue_t queue, dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_async_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// Runs the item in its turn and returns after it. It runs on the calling thread, or on the main thread if the queue is
// the main queue or targets it. Traps if the calling item holds the queue exclusively, since the call would deadlock.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_sync(dispatch_queue_t queue, DISPATCH_NOESCAPE dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_sync_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// Like `dispatch_sync`, but the item runs on the thread that is draining the queue, or on the calling thread if no
// thread is. The only way to wait for an item on a workloop.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_async_and_wait(dispatch_queue_t queue, DISPATCH_NOESCAPE dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_async_and_wait_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// Like `dispatch_async`. On a private concurrent queue, all earlier items complete before this one starts, and later
// ones start after it completes. Other queues treat it as an ordinary item.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_barrier_async(dispatch_queue_t queue, dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_barrier_async_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// Like `dispatch_sync`, but alone on a concurrent queue. Traps if called from any item of that queue; other libraries
// may deadlock.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_barrier_sync(dispatch_queue_t queue, DISPATCH_NOESCAPE dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_barrier_sync_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// Like `dispatch_async_and_wait`, but alone on a concurrent queue.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_barrier_async_and_wait(dispatch_queue_t queue, DISPATCH_NOESCAPE dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_barrier_async_and_wait_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// Submits the item at `when`. Never early; late by at most a tenth of the delay (at least 1 ms, at most 60 s).
// DISPATCH_TIME_FOREVER never submits it.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_after(dispatch_time_t when, dispatch_queue_t queue, dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NONNULL4 DISPATCH_NOTHROW void
dispatch_after_f(dispatch_time_t when, dispatch_queue_t queue, void *_Nullable context,
                 dispatch_function_t work);

// Passed to `dispatch_apply` as the queue: a global queue that suits the caller.
#define DISPATCH_APPLY_AUTO_AVAILABLE 1
#define DISPATCH_APPLY_QUEUE_ARG_NULLABILITY _Nullable
#define DISPATCH_APPLY_AUTO (__extension__(dispatch_queue_t _Nonnull)0)

#ifdef __BLOCKS__
// Calls the block with 0 to iterations - 1, in parallel as far as the queue allows, and returns after the last call.
// The calling thread takes part.
DISPATCH_EXPORT DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_apply(size_t iterations, dispatch_queue_t DISPATCH_APPLY_QUEUE_ARG_NULLABILITY queue,
               DISPATCH_NOESCAPE void (^block)(size_t iteration));
#endif

DISPATCH_EXPORT DISPATCH_NONNULL4 DISPATCH_NOTHROW void
dispatch_apply_f(size_t iterations, dispatch_queue_t DISPATCH_APPLY_QUEUE_ARG_NULLABILITY queue,
                 void *_Nullable context, void (*work)(void *_Nullable context, size_t iteration));

// --- Permanent queues ---

DISPATCH_EXPORT struct dispatch_queue_s _dispatch_main_q;

// The main thread's queue. It runs no items until `dispatch_main` or a run loop serves it.
DISPATCH_INLINE DISPATCH_ALWAYS_INLINE DISPATCH_CONST DISPATCH_NOTHROW dispatch_queue_main_t
dispatch_get_main_queue(void) {
  return DISPATCH_GLOBAL_OBJECT(dispatch_queue_main_t, _dispatch_main_q);
}

// Serves the main queue and never returns. Traps on other threads, and in an item of the main queue.
DISPATCH_EXPORT DISPATCH_NOTHROW DISPATCH_NORETURN void
dispatch_main(void);

typedef long dispatch_queue_priority_t;

#define DISPATCH_QUEUE_PRIORITY_HIGH 2
#define DISPATCH_QUEUE_PRIORITY_DEFAULT 0
#define DISPATCH_QUEUE_PRIORITY_LOW (-2)
#define DISPATCH_QUEUE_PRIORITY_BACKGROUND INT16_MIN

// The shared concurrent queue for a quality-of-service class or one of the priorities above; always the same one. NULL
// for other identifiers and unknown flags. Pass 0 for `flags`.
DISPATCH_EXPORT DISPATCH_CONST DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_queue_global_t
dispatch_get_global_queue(intptr_t identifier, uintptr_t flags);

// --- Attributes: equal ones are the same pointer ---

DISPATCH_EXPORT struct dispatch_queue_attr_s _dispatch_queue_attr_concurrent;

#define DISPATCH_QUEUE_SERIAL NULL
#define DISPATCH_QUEUE_CONCURRENT \
  DISPATCH_GLOBAL_OBJECT(dispatch_queue_attr_t, _dispatch_queue_attr_concurrent)
#define DISPATCH_QUEUE_SERIAL_INACTIVE dispatch_queue_attr_make_initially_inactive(DISPATCH_QUEUE_SERIAL)
#define DISPATCH_QUEUE_CONCURRENT_INACTIVE \
  dispatch_queue_attr_make_initially_inactive(DISPATCH_QUEUE_CONCURRENT)
#define DISPATCH_QUEUE_SERIAL_WITH_AUTORELEASE_POOL   \
  dispatch_queue_attr_make_with_autorelease_frequency( \
      DISPATCH_QUEUE_SERIAL, DISPATCH_AUTORELEASE_FREQUENCY_WORK_ITEM)
#define DISPATCH_QUEUE_CONCURRENT_WITH_AUTORELEASE_POOL \
  dispatch_queue_attr_make_with_autorelease_frequency(   \
      DISPATCH_QUEUE_CONCURRENT, DISPATCH_AUTORELEASE_FREQUENCY_WORK_ITEM)

// The queue starts inactive: it accepts items and runs them after `dispatch_activate`.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_PURE DISPATCH_NOTHROW dispatch_queue_attr_t
dispatch_queue_attr_make_initially_inactive(dispatch_queue_attr_t _Nullable attr);

DISPATCH_ENUM(dispatch_autorelease_frequency, unsigned long,
  DISPATCH_AUTORELEASE_FREQUENCY_INHERIT = 0,
  DISPATCH_AUTORELEASE_FREQUENCY_WORK_ITEM = 1,
  DISPATCH_AUTORELEASE_FREQUENCY_NEVER = 2
);

// No effect: Linux has no autorelease pools.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_PURE DISPATCH_NOTHROW dispatch_queue_attr_t
dispatch_queue_attr_make_with_autorelease_frequency(dispatch_queue_attr_t _Nullable attr,
                                                    dispatch_autorelease_frequency_t frequency);

// Sets the class of the queue's items and a relative priority from -15 to 0. NULL for invalid values.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_PURE DISPATCH_NOTHROW dispatch_queue_attr_t
dispatch_queue_attr_make_with_qos_class(dispatch_queue_attr_t _Nullable attr,
                                        dispatch_qos_class_t qos_class, int relative_priority);

// --- Creating and querying queues ---

#define DISPATCH_TARGET_QUEUE_DEFAULT NULL

// Returns a queue whose items run as items of `target` (NULL: the global queue that suits the attributes). The target
// is fixed once the queue is active. Copies the label. Traps for an invalid attribute.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_queue_t
    dispatch_queue_create_with_target(const char *_Nullable label, dispatch_queue_attr_t _Nullable attr,
                                      dispatch_queue_t _Nullable target)
        DISPATCH_ALIAS_V2(dispatch_queue_create_with_target);

// With the default target, which may change while the queue is active.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_queue_t
    dispatch_queue_create(const char *_Nullable label, dispatch_queue_attr_t _Nullable attr);

#define DISPATCH_CURRENT_QUEUE_LABEL NULL

// The queue's label, or "". NULL means the current queue. Valid while the queue lives.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW const char *
dispatch_queue_get_label(dispatch_queue_t _Nullable queue);

// The class with which the queue was created, or unspecified (0).
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NONNULL1 DISPATCH_NOTHROW dispatch_qos_class_t
dispatch_queue_get_qos_class(dispatch_queue_t queue, int *_Nullable relative_priority_ptr);

// For debugging: the innermost queue whose item runs on this thread. Outside items, the main queue on the main thread
// and a global queue elsewhere. Not suitable for deciding whether `dispatch_sync` is safe.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_queue_t
dispatch_get_current_queue(void);

// Sets the target, or the default target for NULL. The target runs a queue's items, a source's handlers, a channel's
// barriers, and the finalizers of all objects except channels and data. Takes effect at once on an inactive object, and
// between two items of a queue from `dispatch_queue_create`. Traps for queues with a fixed target.
DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_set_target_queue(dispatch_object_t object, dispatch_queue_t _Nullable queue);

// Sets a minimum class for the items of an inactive queue, workloop or source. Traps for other objects.
DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_set_qos_class_floor(dispatch_object_t object, dispatch_qos_class_t qos_class, int relative_priority);

// --- Queue-specific values ---

// Stores a value under the address `key`; NULL removes it. When the value is replaced or the queue is destroyed, the
// destructor is called with it on a global queue.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_queue_set_specific(dispatch_queue_t queue, const void *key, void *_Nullable context,
                            dispatch_function_t _Nullable destructor);

// This queue's own value, or NULL.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_WARN_RESULT DISPATCH_NOTHROW void *_Nullable
dispatch_queue_get_specific(dispatch_queue_t queue, const void *key);

// The value of the current queue, or of the nearest target that has one. NULL outside items.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW void *_Nullable
dispatch_get_specific(const void *key);

// --- Assertions ---

// Traps unless called from an item of the queue, from an item of a queue that targets it, or from a synchronous item
// that such an item waits for. All code on the main thread counts as running on the main queue.
DISPATCH_EXPORT DISPATCH_NONNULL1 void
dispatch_assert_queue(dispatch_queue_t queue) DISPATCH_ALIAS_V2(dispatch_assert_queue);

// Also traps if the item does not run alone on the queue.
DISPATCH_EXPORT DISPATCH_NONNULL1 void
dispatch_assert_queue_barrier(dispatch_queue_t queue);

// Traps if `dispatch_assert_queue` would not.
DISPATCH_EXPORT DISPATCH_NONNULL1 void
dispatch_assert_queue_not(dispatch_queue_t queue) DISPATCH_ALIAS_V2(dispatch_assert_queue_not);

#ifdef NDEBUG
#define dispatch_assert_queue_debug(q) ((void)(0 && (q)))
#define dispatch_assert_queue_barrier_debug(q) ((void)(0 && (q)))
#define dispatch_assert_queue_not_debug(q) ((void)(0 && (q)))
#else
#define dispatch_assert_queue_debug(q) dispatch_assert_queue(q)
#define dispatch_assert_queue_barrier_debug(q) dispatch_assert_queue_barrier(q)
#define dispatch_assert_queue_not_debug(q) dispatch_assert_queue_not(q)
#endif

// --- Signals ---

// Allows a signal to be sent to the library's threads: they unblock it, and keep whatever mask an item sets for it.
// Returns 0, or -1 with `errno` for an invalid signal. Other libraries for Linux lack this function.
DISPATCH_EXPORT DISPATCH_NOTHROW int
dispatch_allow_send_signals(int preserve_signum);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
