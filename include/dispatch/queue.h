// Queues: lists of items, executed in the order of their submission by threads that the library provides.

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

// Any queue; then those that always exist and are shared by all, those that run one item at a time, the one
// of the main thread, and those that run items side by side.
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

// The classes of quality of service, best first. A program that has these names for itself defines
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
// Appends an item and returns. The block is copied; the queue lives until the item has run.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_async(dispatch_queue_t queue, dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_async_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// Returns when the item has run, in its turn, on the calling thread; on the main thread if the queue is the
// main queue or targets it. Traps if the calling item already keeps the queue to itself: it would never return.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_sync(dispatch_queue_t queue, DISPATCH_NOESCAPE dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_sync_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// Waits like `dispatch_sync`, and heeds the queue's attributes. The item runs on the thread that empties the
// queue just then, on the caller's if there is none. The one way to wait for an item on a workloop.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_async_and_wait(dispatch_queue_t queue, DISPATCH_NOESCAPE dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_async_and_wait_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// As `dispatch_async`; on a concurrent queue that the program made, all earlier items end before this one
// begins, and later ones wait for its end. On other queues an ordinary item.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_barrier_async(dispatch_queue_t queue, dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_barrier_async_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// As `dispatch_sync`, and alone on a concurrent queue. Called from an ordinary item of the same queue it
// would wait for its own end.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_barrier_sync(dispatch_queue_t queue, DISPATCH_NOESCAPE dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_barrier_sync_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// As `dispatch_async_and_wait`, and alone on a concurrent queue.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_barrier_async_and_wait(dispatch_queue_t queue, DISPATCH_NOESCAPE dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_barrier_async_and_wait_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);

#ifdef __BLOCKS__
// Submits the item at `when`: never sooner, up to a tenth of the delay later (at least 1 ms, at most 60 s).
// DISPATCH_TIME_FOREVER is never.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_after(dispatch_time_t when, dispatch_queue_t queue, dispatch_block_t block);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NONNULL4 DISPATCH_NOTHROW void
dispatch_after_f(dispatch_time_t when, dispatch_queue_t queue, void *_Nullable context,
                 dispatch_function_t work);

// In place of a queue for `dispatch_apply`: a global one that suits the caller.
#define DISPATCH_APPLY_AUTO_AVAILABLE 1
#define DISPATCH_APPLY_QUEUE_ARG_NULLABILITY _Nullable
#define DISPATCH_APPLY_AUTO (__extension__(dispatch_queue_t _Nonnull)0)

#ifdef __BLOCKS__
// Calls the block with 0 to iterations - 1, side by side as far as the queue allows it, and returns after the
// last. The calling thread takes part.
DISPATCH_EXPORT DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_apply(size_t iterations, dispatch_queue_t DISPATCH_APPLY_QUEUE_ARG_NULLABILITY queue,
               DISPATCH_NOESCAPE void (^block)(size_t iteration));
#endif

DISPATCH_EXPORT DISPATCH_NONNULL4 DISPATCH_NOTHROW void
dispatch_apply_f(size_t iterations, dispatch_queue_t DISPATCH_APPLY_QUEUE_ARG_NULLABILITY queue,
                 void *_Nullable context, void (*work)(void *_Nullable context, size_t iteration));

// --- The queues that always exist ---

DISPATCH_EXPORT struct dispatch_queue_s _dispatch_main_q;

// The queue of the main thread. It runs nothing before `dispatch_main` or a run loop does.
DISPATCH_INLINE DISPATCH_ALWAYS_INLINE DISPATCH_CONST DISPATCH_NOTHROW dispatch_queue_main_t
dispatch_get_main_queue(void) {
  return DISPATCH_GLOBAL_OBJECT(dispatch_queue_main_t, _dispatch_main_q);
}

// Serves the main queue, for good. Traps if called elsewhere than on the main thread, or from an item of it.
DISPATCH_EXPORT DISPATCH_NOTHROW DISPATCH_NORETURN void
dispatch_main(void);

typedef long dispatch_queue_priority_t;

#define DISPATCH_QUEUE_PRIORITY_HIGH 2
#define DISPATCH_QUEUE_PRIORITY_DEFAULT 0
#define DISPATCH_QUEUE_PRIORITY_LOW (-2)
#define DISPATCH_QUEUE_PRIORITY_BACKGROUND INT16_MIN

// The shared concurrent queue of a class of service (or of one of the priorities above); the same at each
// call. NULL for any other identifier, and for flags other than 0.
DISPATCH_EXPORT DISPATCH_CONST DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_queue_global_t
dispatch_get_global_queue(intptr_t identifier, uintptr_t flags);

// --- Attributes, of which equal ones are the same pointer ---

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

// The queue is born inactive: it takes items, and runs none before `dispatch_activate`.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_PURE DISPATCH_NOTHROW dispatch_queue_attr_t
dispatch_queue_attr_make_initially_inactive(dispatch_queue_attr_t _Nullable attr);

DISPATCH_ENUM(dispatch_autorelease_frequency, unsigned long,
  DISPATCH_AUTORELEASE_FREQUENCY_INHERIT = 0,
  DISPATCH_AUTORELEASE_FREQUENCY_WORK_ITEM = 1,
  DISPATCH_AUTORELEASE_FREQUENCY_NEVER = 2
);

// Remembered only: there are no autorelease pools on Linux.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_PURE DISPATCH_NOTHROW dispatch_queue_attr_t
dispatch_queue_attr_make_with_autorelease_frequency(dispatch_queue_attr_t _Nullable attr,
                                                    dispatch_autorelease_frequency_t frequency);

// The queue's items have this class of service; relative priorities are -15 to 0. NULL for values that are none.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_PURE DISPATCH_NOTHROW dispatch_queue_attr_t
dispatch_queue_attr_make_with_qos_class(dispatch_queue_attr_t _Nullable attr,
                                        dispatch_qos_class_t qos_class, int relative_priority);

// --- Making and asking queues ---

#define DISPATCH_TARGET_QUEUE_DEFAULT NULL

// A queue whose items run as items of `target` (NULL: of the global queue that suits the attributes), for
// good once it is active. The label is copied. Traps if `attr` is no attribute.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_queue_t
    dispatch_queue_create_with_target(const char *_Nullable label, dispatch_queue_attr_t _Nullable attr,
                                      dispatch_queue_t _Nullable target)
        DISPATCH_ALIAS_V2(dispatch_queue_create_with_target);

// The same with the default target, which may be changed while the queue is active.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_queue_t
    dispatch_queue_create(const char *_Nullable label, dispatch_queue_attr_t _Nullable attr);

#define DISPATCH_CURRENT_QUEUE_LABEL NULL

// The queue's label, "" if it has none; that of the current queue for NULL. Valid while the queue lives.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW const char *
dispatch_queue_get_label(dispatch_queue_t _Nullable queue);

// The class that the queue was made with, unspecified (0) if with none.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NONNULL1 DISPATCH_NOTHROW dispatch_qos_class_t
dispatch_queue_get_qos_class(dispatch_queue_t queue, int *_Nullable relative_priority_ptr);

// For debugging: the innermost queue whose item runs on this thread; outside of items the main queue on the
// main thread, a global queue elsewhere. Not for deciding whether `dispatch_sync` is safe.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_queue_t
dispatch_get_current_queue(void);

// Another target, NULL for the default one: for a queue where its items run, for a source its handlers, for a
// channel its input and output, for the other objects the finalizer. At once while the object is inactive;
// between two items of a queue that `dispatch_queue_create` made. Traps for queues that have their target for
// good.
DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_set_target_queue(dispatch_object_t object, dispatch_queue_t _Nullable queue);

// The queue's items have at least this class. Of an inactive queue, workloop or source; traps for others.
DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_set_qos_class_floor(dispatch_object_t object, dispatch_qos_class_t qos_class, int relative_priority);

// --- Values that belong to a queue ---

// Keeps a value under the address `key`, NULL removes it. The destructor is called with the value on a global
// queue when it is replaced or the queue goes.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_queue_set_specific(dispatch_queue_t queue, const void *key, void *_Nullable context,
                            dispatch_function_t _Nullable destructor);

// The value of just this queue, or NULL.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_WARN_RESULT DISPATCH_NOTHROW void *_Nullable
dispatch_queue_get_specific(dispatch_queue_t queue, const void *key);

// The value of the current queue or of the first of its targets that has one; NULL outside of items.
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW void *_Nullable
dispatch_get_specific(const void *key);

// --- Assertions ---

// Traps unless called from an item of the queue, of a queue that targets it, or from a synchronous item that
// such an item waits for. For the main queue all code of the main thread is right.
DISPATCH_EXPORT DISPATCH_NONNULL1 void
dispatch_assert_queue(dispatch_queue_t queue) DISPATCH_ALIAS_V2(dispatch_assert_queue);

// The same, and traps as well if the item is not alone on the queue.
DISPATCH_EXPORT DISPATCH_NONNULL1 void
dispatch_assert_queue_barrier(dispatch_queue_t queue);

// Traps where `dispatch_assert_queue` does not.
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

// Lets a signal be directed at threads of the library: it is not blocked on them, and how an item left its
// mask stays so. 0, or -1 with `errno` for what is no signal. Not in other libraries for Linux.
DISPATCH_EXPORT DISPATCH_NOTHROW int
dispatch_allow_send_signals(int preserve_signum);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
