// Sources: events of the system, or of the program, that become calls of a handler on a queue.

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

// For each type: what the handle and the mask are, and what `dispatch_source_get_data` tells in the handler.

// What the program merges: the sum, the union of bits, or the last value. No handle, no mask.
#define DISPATCH_SOURCE_TYPE_DATA_ADD (&_dispatch_source_type_data_add)
DISPATCH_SOURCE_TYPE_DECL(data_add);
#define DISPATCH_SOURCE_TYPE_DATA_OR (&_dispatch_source_type_data_or)
DISPATCH_SOURCE_TYPE_DECL(data_or);
#define DISPATCH_SOURCE_TYPE_DATA_REPLACE (&_dispatch_source_type_data_replace)
DISPATCH_SOURCE_TYPE_DECL(data_replace);

// Bytes to be read. Handle: a descriptor. Data: about how many, 0 at the end of the file.
#define DISPATCH_SOURCE_TYPE_READ (&_dispatch_source_type_read)
DISPATCH_SOURCE_TYPE_DECL(read);

// Room for bytes to be written. Handle: a descriptor. Data: a hint how much.
#define DISPATCH_SOURCE_TYPE_WRITE (&_dispatch_source_type_write)
DISPATCH_SOURCE_TYPE_DECL(write);

// Signals to the process, whose ordinary disposition this replaces. Handle: the number. Data: how many came.
#define DISPATCH_SOURCE_TYPE_SIGNAL (&_dispatch_source_type_signal)
DISPATCH_SOURCE_TYPE_DECL(signal);

// A timer, see `dispatch_source_set_timer`. Mask: DISPATCH_TIMER_STRICT or 0. Data: how often it fired.
#define DISPATCH_SOURCE_TYPE_TIMER (&_dispatch_source_type_timer)
DISPATCH_SOURCE_TYPE_DECL(timer);

// What another process does. Handle: its pid. Mask: DISPATCH_PROC flags. Data: those that happened. Not in
// other libraries for Linux, nor are the next two.
#define DISPATCH_SOURCE_TYPE_PROC (&_dispatch_source_type_proc)
DISPATCH_SOURCE_TYPE_DECL(proc);

// What happens to a file or directory. Handle: a descriptor of it. Mask: DISPATCH_VNODE flags. Data: those
// that happened.
#define DISPATCH_SOURCE_TYPE_VNODE (&_dispatch_source_type_vnode)
DISPATCH_SOURCE_TYPE_DECL(vnode);

// How short memory is. No handle. Mask: DISPATCH_MEMORYPRESSURE flags. Data: the level that was entered.
#define DISPATCH_SOURCE_TYPE_MEMORYPRESSURE (&_dispatch_source_type_memorypressure)
DISPATCH_SOURCE_TYPE_DECL(memorypressure);

// Mach ports are not of this system.
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
// The leeway is meant to be kept, however small.
#define DISPATCH_TIMER_STRICT 0x1

// A source, inactive; its handlers run on `queue` (NULL: a global one). NULL for a handle or mask that the type
// does not know.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_source_t
dispatch_source_create(dispatch_source_type_t type, uintptr_t handle, uintptr_t mask,
                       dispatch_queue_t _Nullable queue);

// Handlers come in two forms, block and function, of which the one that was set last counts; NULL removes it.
// Function handlers get the source's context.

#ifdef __BLOCKS__
// Called for events, one call at a time; what happens meanwhile is told by the next.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_event_handler(dispatch_source_t source, dispatch_block_t _Nullable handler);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_event_handler_f(dispatch_source_t source, dispatch_function_t _Nullable handler);

#ifdef __BLOCKS__
// Called once after cancellation, when the system no longer watches the handle: the place to close it.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_cancel_handler(dispatch_source_t source, dispatch_block_t _Nullable handler);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_cancel_handler_f(dispatch_source_t source, dispatch_function_t _Nullable handler);

#ifdef __BLOCKS__
// Called once when the watch has begun, before any event; never if the source was cancelled before that.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_registration_handler(dispatch_source_t source, dispatch_block_t _Nullable handler);
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_source_set_registration_handler_f(dispatch_source_t source, dispatch_function_t _Nullable handler);

// No further call of the event handler begins; one that runs is not interrupted. The handle may be closed when
// the cancel handler is called, not before. Again: without effect.
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

// What this call of the event handler is about. Meaningless elsewhere.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_WARN_RESULT DISPATCH_NOTHROW uintptr_t
dispatch_source_get_data(dispatch_source_t source);

// An event of the program's own, for the three data types; traps for others. Nothing is told while the outcome
// is zero.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_source_merge_data(dispatch_source_t source, uintptr_t value);

// Sets a timer to fire at `start`, then every `interval` nanoseconds (DISPATCH_TIME_FOREVER: once), each time up
// to `leeway` nanoseconds later if that saves a wake-up. `start` decides about the clock; DISPATCH_TIME_FOREVER
// as start stops the timer. What it had counted is forgotten. Traps for sources that are no timers.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_source_set_timer(dispatch_source_t source, dispatch_time_t start, uint64_t interval, uint64_t leeway);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
