// Sources: call a handler on a queue for events of the system or the program.

#ifndef __DISPATCH_SOURCE__
#define __DISPATCH_SOURCE__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

#include <signal.h>

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

DISPATCH_SOURCE_DECL(dispatch_source)

__BEGIN_DECLS

typedef const struct dispatch_source_type_s *dispatch_source_type_t;

// Each type defines its handle, its mask, and what `dispatch_source_get_data` returns in the handler.

// Data merged by the program: the sum, the bitwise OR, or the last value. No handle, no mask.
#define DISPATCH_SOURCE_TYPE_DATA_ADD (&_dispatch_source_type_data_add)
DISPATCH_SOURCE_TYPE_DECL(data_add);
#define DISPATCH_SOURCE_TYPE_DATA_OR (&_dispatch_source_type_data_or)
DISPATCH_SOURCE_TYPE_DECL(data_or);
#define DISPATCH_SOURCE_TYPE_DATA_REPLACE (&_dispatch_source_type_data_replace)
DISPATCH_SOURCE_TYPE_DECL(data_replace);

// Readable bytes. Handle: a descriptor. Data: their approximate number, 0 at the end of the file.
#define DISPATCH_SOURCE_TYPE_READ (&_dispatch_source_type_read)
DISPATCH_SOURCE_TYPE_DECL(read);

// Room for writing. Handle: a descriptor. Data: an estimate of the room in bytes.
#define DISPATCH_SOURCE_TYPE_WRITE (&_dispatch_source_type_write)
DISPATCH_SOURCE_TYPE_DECL(write);

// Signals to the process; the source replaces their usual disposition. Handle: the signal. Data: the number received.
#define DISPATCH_SOURCE_TYPE_SIGNAL (&_dispatch_source_type_signal)
DISPATCH_SOURCE_TYPE_DECL(signal);

// A timer, see `dispatch_source_set_timer`. Mask: DISPATCH_TIMER_STRICT or 0. Data: the number of times it has fired.
#define DISPATCH_SOURCE_TYPE_TIMER (&_dispatch_source_type_timer)
DISPATCH_SOURCE_TYPE_DECL(timer);

// Events of another process. Handle: its pid. Mask: DISPATCH_PROC flags. Data: the flags of the events. Other libraries
// for Linux lack this type and the next two.
#define DISPATCH_SOURCE_TYPE_PROC (&_dispatch_source_type_proc)
DISPATCH_SOURCE_TYPE_DECL(proc);

// Changes of a file or directory. Handle: its descriptor. Mask: DISPATCH_VNODE flags. Data: the flags of the changes.
#define DISPATCH_SOURCE_TYPE_VNODE (&_dispatch_source_type_vnode)
DISPATCH_SOURCE_TYPE_DECL(vnode);

// Memory pressure. No handle. Mask: DISPATCH_MEMORYPRESSURE flags. Data: the new level.
#define DISPATCH_SOURCE_TYPE_MEMORYPRESSURE (&_dispatch_source_type_memorypressure)
DISPATCH_SOURCE_TYPE_DECL(memorypressure);

// Linux has no Mach ports.
#define DISPATCH_SOURCE_TYPE_MACH_SEND (&_dispatch_source_type_mach_send)
DISPATCH_SOURCE_TYPE_DECL(mach_send) DISPATCH_LINUX_UNAVAILABLE();
#define DISPATCH_SOURCE_TYPE_MACH_RECV (&_dispatch_source_type_mach_recv)
DISPATCH_SOURCE_TYPE_DECL(mach_recv) DISPATCH_LINUX_UNAVAILABLE();

typedef unsigned long dispatch_source_mach_send_flags_t;
#define DISPATCH_MACH_SEND_DEAD 0x1
typedef unsigned long dispatch_source_mach_recv_flags_t;

typedef unsigned long dispatch_source_memorypressure_flags_t;
#define DISPATCH_MEMORYPRESSURE_NORMAL 0x01
#define DISPATCH_MEMORYPRESSURE_WARN 0x02
#define DISPATCH_MEMORYPRESSURE_CRITICAL 0x04

typedef unsigned long dispatch_source_proc_flags_t;
#define DISPATCH_PROC_EXIT 0x80000000
#define DISPATCH_PROC_FORK 0x40000000
#define DISPATCH_PROC_EXEC 0x20000000
#define DISPATCH_PROC_SIGNAL 0x08000000

typedef unsigned long dispatch_source_vnode_flags_t;
#define DISPATCH_VNODE_DELETE 0x1
#define DISPATCH_VNODE_WRITE 0x2
#define DISPATCH_VNODE_EXTEND 0x4
#define DISPATCH_VNODE_ATTRIB 0x8
#define DISPATCH_VNODE_LINK 0x10
#define DISPATCH_VNODE_RENAME 0x20
#define DISPATCH_VNODE_REVOKE 0x40
#define DISPATCH_VNODE_FUNLOCK 0x100

typedef unsigned long dispatch_source_timer_flags_t;
// Keeps the leeway, however small it is.
#define DISPATCH_TIMER_STRICT 0x1

// Returns an inactive source whose handlers run on `queue` (NULL: a global queue). NULL for a handle or mask that the
// type does not support.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_source_t
dispatch_source_create(dispatch_source_type_t type, uintptr_t handle, uintptr_t mask,
                       dispatch_queue_t _Nullable queue);

// A handler is a block or a function; the one set last counts, and NULL removes it. A function receives the source's
// context.

#ifdef __BLOCKS__
// Called for events, one call at a time. Events that happen during a call are merged into the next one.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_event_handler(dispatch_source_t source, dispatch_block_t _Nullable handler);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_event_handler_f(dispatch_source_t source, dispatch_function_t _Nullable handler);

#ifdef __BLOCKS__
// Called once after cancellation, when the system no longer watches the handle. Close the handle here.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_cancel_handler(dispatch_source_t source, dispatch_block_t _Nullable handler);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_cancel_handler_f(dispatch_source_t source, dispatch_function_t _Nullable handler);

#ifdef __BLOCKS__
// Called once when the source starts to watch, before any event. Never called if the source was cancelled earlier.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_registration_handler(dispatch_source_t source, dispatch_block_t _Nullable handler);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_registration_handler_f(dispatch_source_t source, dispatch_function_t _Nullable handler);

// Prevents further calls of the event handler; a running call continues. Do not close the handle before the cancel
// handler is called. Cancelling again has no effect.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_source_cancel(dispatch_source_t source);

// Non-zero after `dispatch_source_cancel`.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_WARN_RESULT DISPATCH_NOTHROW intptr_t
dispatch_source_testcancel(dispatch_source_t source);

// As given at creation.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_WARN_RESULT DISPATCH_NOTHROW uintptr_t
dispatch_source_get_handle(dispatch_source_t source);

// As given at creation; 0 after cancellation.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_WARN_RESULT DISPATCH_NOTHROW uintptr_t
dispatch_source_get_mask(dispatch_source_t source);

// The data of this event handler call. Unspecified elsewhere.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_WARN_RESULT DISPATCH_NOTHROW uintptr_t
dispatch_source_get_data(dispatch_source_t source);

// Merges a value into a source of one of the three data types; traps for others. The handler is not called while the
// merged value is zero.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_source_merge_data(dispatch_source_t source, uintptr_t value);

// Sets the timer to fire at `start` and then every `interval` nanoseconds (DISPATCH_TIME_FOREVER: once). Each firing
// may be up to `leeway` nanoseconds late to save a wake-up. `start` selects the clock; DISPATCH_TIME_FOREVER stops the
// timer. Discards the firings counted so far. Traps for other sources.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_source_set_timer(dispatch_source_t source, dispatch_time_t start, uint64_t interval, uint64_t leeway);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
