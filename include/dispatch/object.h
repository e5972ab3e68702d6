// Common to all dispatch objects: reference counts, contexts, suspension.

#ifndef __DISPATCH_OBJECT__
#define __DISPATCH_OBJECT__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

#ifdef __cplusplus

// Classes only so that a queue converts to an object but not the reverse. They cannot be created, copied or destroyed
// as C++ objects.
typedef struct dispatch_object_s {
 private:
  dispatch_object_s();
  ~dispatch_object_s();
  dispatch_object_s(const dispatch_object_s &);
  void operator=(const dispatch_object_s &);
} *dispatch_object_t;
#define DISPATCH_DECL(name) \
  typedef struct name##_s : public dispatch_object_s { \
  } *name##_t
#define DISPATCH_DECL_SUBCLASS(name, base) \
  typedef struct name##_s : public base##_s { \
  } *name##_t
#define DISPATCH_GLOBAL_OBJECT(type, object) (static_cast<type>(&(object)))

#else

// Accepts any dispatch object as an argument.
typedef union {
  struct _os_object_s *_os_obj;
  struct dispatch_object_s *_do;
  struct dispatch_queue_s *_dq;
  struct dispatch_queue_attr_s *_dqa;
  struct dispatch_group_s *_dg;
  struct dispatch_source_s *_ds;
  struct dispatch_mach_s *_dm;
  struct dispatch_mach_msg_s *_dmsg;
  struct dispatch_semaphore_s *_dsema;
  struct dispatch_data_s *_ddata;
  struct dispatch_io_s *_dchannel;
} dispatch_object_t DISPATCH_TRANSPARENT_UNION;
#define DISPATCH_DECL(name) typedef struct name##_s *name##_t
#define DISPATCH_DECL_SUBCLASS(name, base) typedef base##_t name##_t
#define DISPATCH_GLOBAL_OBJECT(type, object) ((type) & (object))

#endif

#define DISPATCH_RETURNS_RETAINED
#define DISPATCH_SOURCE_DECL(name) DISPATCH_DECL(name);
#define DISPATCH_DATA_DECL(name) DISPATCH_DECL(name)
#define DISPATCH_SOURCE_TYPE_DECL(name) \
  DISPATCH_EXPORT const struct dispatch_source_type_s _dispatch_source_type_##name

#ifdef __BLOCKS__
// The work of an item. A block literal lives on the stack of its function; functions that keep a block copy it.
typedef void (^dispatch_block_t)(void);
#endif

__BEGIN_DECLS

// Adds a reference. No effect on permanent queues and the empty data object.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW
DISPATCH_SWIFT_UNAVAILABLE("dispatch objects are counted by ARC in Swift") void
dispatch_retain(dispatch_object_t object);

// Releases a reference. After the last release the object is destroyed on a thread of the library's choice, once its
// work is complete. Traps on more releases than references, and on the last release of a queue or source that is
// suspended or was never activated.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW
DISPATCH_SWIFT_UNAVAILABLE("dispatch objects are counted by ARC in Swift") void
dispatch_release(dispatch_object_t object);

// The context last set, or NULL.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_WARN_RESULT DISPATCH_NOTHROW void *_Nullable
dispatch_get_context(dispatch_object_t object);

// Sets the object's context pointer. No effect on global queues and the main queue.
DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_set_context(dispatch_object_t object, void *_Nullable context);

// Calls `finalizer` once with the object's context, on the object's target queue, after the last release. Not called if
// the context is NULL then.
DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_set_finalizer_f(dispatch_object_t object, dispatch_function_t _Nullable finalizer);

// Starts an object that was created inactive. No effect on other objects.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_activate(dispatch_object_t object);

// Stops a queue, or a source's handlers, after the current item. Nests: each call needs its own `dispatch_resume`. No
// effect on other objects, on global queues and on the main queue.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_suspend(dispatch_object_t object);

// Undoes one `dispatch_suspend`; traps if there is none. Activates a source that was never activated and is not
// suspended.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_resume(dispatch_object_t object);

#ifdef __BLOCKS__

// With `_Generic`, the next four are macros that call the function for the type of their first argument. The functions
// themselves cannot be called.

// Waits for a block object, a group or a semaphore. Returns 0, or non-zero after the timeout.
DISPATCH_EXPORT DISPATCH_UNAVAILABLE DISPATCH_NONNULL1 DISPATCH_NOTHROW intptr_t
dispatch_wait(void *object, dispatch_time_t timeout);

// Submits a block when a block object or a group has completed.
DISPATCH_EXPORT DISPATCH_UNAVAILABLE DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_notify(void *object, dispatch_object_t queue, dispatch_block_t notification_block);

// Cancels a block object or a source.
DISPATCH_EXPORT DISPATCH_UNAVAILABLE DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_cancel(void *object);

// Non-zero if a block object or a source is cancelled.
DISPATCH_EXPORT DISPATCH_UNAVAILABLE DISPATCH_NONNULL_ALL DISPATCH_WARN_RESULT DISPATCH_NOTHROW intptr_t
dispatch_testcancel(void *object);

#if __has_extension(c_generic_selections)
#define dispatch_wait(object, timeout)               \
  _Generic((object),                                 \
      dispatch_block_t: dispatch_block_wait,         \
      dispatch_group_t: dispatch_group_wait,         \
      dispatch_semaphore_t: dispatch_semaphore_wait) \
  ((object), (timeout))
#define dispatch_notify(object, queue, notification_block) \
  _Generic((object),                                       \
      dispatch_block_t: dispatch_block_notify,             \
      dispatch_group_t: dispatch_group_notify)             \
  ((object), (queue), (notification_block))
#define dispatch_cancel(object)                \
  _Generic((object),                           \
      dispatch_block_t: dispatch_block_cancel, \
      dispatch_source_t: dispatch_source_cancel)((object))
#define dispatch_testcancel(object)                \
  _Generic((object),                               \
      dispatch_block_t: dispatch_block_testcancel, \
      dispatch_source_t: dispatch_source_testcancel)((object))
#endif

#endif

// Logs the message and a description of the object, for debugging. The environment variable LIBDISPATCH_LOG selects the
// destination: `stderr`, `file`, `syslog` (or YES), or NO.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NOTHROW DISPATCH_COLD
    __attribute__((__format__(__printf__, 2, 3))) void
    dispatch_debug(dispatch_object_t object, const char *message, ...);

DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NOTHROW DISPATCH_COLD
    __attribute__((__format__(__printf__, 2, 0))) void
    dispatch_debugv(dispatch_object_t object, const char *message, va_list ap);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
