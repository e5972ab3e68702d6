// Exports beyond the public headers: hooks for run loops and language runtimes, and functions that are exported only
// because some programs call them. All of them may change.

#ifndef __DISPATCH_PRIVATE__
#define __DISPATCH_PRIVATE__

#include <dispatch/dispatch.h>

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

__BEGIN_DECLS

// --- Run loops ---

// A descriptor that is readable while the main queue has work. The first call creates it; the caller polls it.
DISPATCH_EXPORT int _dispatch_get_main_queue_port_4CF(void);
DISPATCH_EXPORT int _dispatch_get_main_queue_handle_4CF(void);

// Runs the items that the main queue holds now, on the calling thread. The argument is ignored.
DISPATCH_EXPORT void _dispatch_main_queue_callback_4CF(void *_Nullable ignored);

// A queue that runs one item for each call of `perform`, which returns whether more remain.
DISPATCH_EXPORT DISPATCH_WARN_RESULT dispatch_queue_serial_t
_dispatch_runloop_root_queue_create_4CF(const char *_Nullable label, unsigned long flags);
DISPATCH_EXPORT bool _dispatch_runloop_root_queue_perform_4CF(dispatch_queue_t queue);
DISPATCH_EXPORT void _dispatch_runloop_root_queue_wakeup_4CF(dispatch_queue_t queue);

DISPATCH_EXPORT void *_Nullable (*_Nullable _dispatch_begin_NSAutoReleasePool)(void);
DISPATCH_EXPORT void (*_Nullable _dispatch_end_NSAutoReleasePool)(void *_Nullable pool);
DISPATCH_EXPORT void _dispatch_poll_for_events_4launchd(void);

// --- Process and fork ---

DISPATCH_EXPORT void libdispatch_init(void);
DISPATCH_EXPORT bool _dispatch_is_multithreaded(void);
DISPATCH_EXPORT bool _dispatch_is_fork_of_multithreaded_parent(void);
DISPATCH_EXPORT void _dispatch_prohibit_transition_to_multithreaded(bool prohibit);
DISPATCH_EXPORT void dispatch_atfork_prepare(void);
DISPATCH_EXPORT void dispatch_atfork_parent(void);
DISPATCH_EXPORT void dispatch_atfork_child(void);

// --- Queues ---

// Flag for `dispatch_get_global_queue`: a global queue with another label. It shares the pool's threads; on other
// libraries each of its items gets a thread, however many are busy.
#define DISPATCH_QUEUE_OVERCOMMIT 0x2ull
#define DISPATCH_QUEUE_PRIORITY_NON_INTERACTIVE INT8_MIN
#define DISPATCH_QUEUE_WIDTH_ACTIVE_CPUS -1
#define DISPATCH_QUEUE_WIDTH_MAX_PHYSICAL_CPUS -2
#define DISPATCH_QUEUE_WIDTH_MAX_LOGICAL_CPUS -3

typedef struct voucher_s *voucher_t;

DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_set_qos_class(dispatch_object_t object, dispatch_qos_class_t qos_class, int relative_priority);
DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_set_qos_class_fallback(dispatch_object_t object, dispatch_qos_class_t qos_class);
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_queue_attr_t
dispatch_queue_attr_make_with_overcommit(dispatch_queue_attr_t _Nullable attr, bool overcommit);
// The label is not copied and must outlive the queue.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_queue_set_label_nocopy(dispatch_queue_t queue, const char *label);
// Limits how many items run at once. The constants above stand for that number of processors. Traps for serial queues.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_queue_set_width(dispatch_queue_t queue, long width);
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_async_enforce_qos_class_f(dispatch_queue_t queue, void *_Nullable context, dispatch_function_t work);
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_queue_t
dispatch_queue_create_with_accounting_override_voucher(const char *_Nullable label,
                                                       dispatch_queue_attr_t _Nullable attr,
                                                       voucher_t _Nullable voucher);

// The layout of a queue, for debuggers: 17 numbers, the first of which is the layout's version.
DISPATCH_EXPORT const struct dispatch_queue_offsets_s {
  uint16_t dqo_version;
  uint16_t dqo_parts[16];
} dispatch_queue_offsets;

// --- Workloops ---

DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_workloop_t _Nullable
dispatch_workloop_copy_current(void);
DISPATCH_EXPORT DISPATCH_WARN_RESULT DISPATCH_NOTHROW bool
dispatch_workloop_is_current(dispatch_workloop_t workloop);
DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_workloop_set_cpupercent(dispatch_workloop_t workloop, uint8_t percent, uint32_t refill_milliseconds);
DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_workloop_set_qos_class(dispatch_workloop_t workloop, dispatch_qos_class_t qos_class, uint64_t flags);
DISPATCH_EXPORT DISPATCH_NOTHROW void
dispatch_workloop_set_qos_class_floor(dispatch_workloop_t workloop, dispatch_qos_class_t qos_class,
                                      int relative_priority, uint64_t flags);
DISPATCH_EXPORT bool _dispatch_workloop_should_yield_4NW(void);

// --- Block objects ---

#ifdef __BLOCKS__
DISPATCH_EXPORT DISPATCH_RETURNS_RETAINED_BLOCK DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_block_t
dispatch_block_create_with_voucher(dispatch_block_flags_t flags, voucher_t _Nullable voucher,
                                   dispatch_block_t block);
DISPATCH_EXPORT DISPATCH_RETURNS_RETAINED_BLOCK DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_block_t
dispatch_block_create_with_voucher_and_qos_class(dispatch_block_flags_t flags, voucher_t _Nullable voucher,
                                                 dispatch_qos_class_t qos_class, int relative_priority,
                                                 dispatch_block_t block);
DISPATCH_EXPORT DISPATCH_WARN_RESULT dispatch_block_t
_dispatch_block_create(dispatch_block_flags_t flags, voucher_t _Nullable voucher, unsigned long priority,
                       dispatch_block_t block);
#endif
// The invoke pointer that distinguishes block objects from other blocks.
DISPATCH_EXPORT void (*const _dispatch_block_special_invoke)(void *block);

// --- Sources ---

// Fires at an interval in milliseconds (the handle), in phase with all other sources of that interval.
#define DISPATCH_SOURCE_TYPE_INTERVAL (&_dispatch_source_type_interval)
DISPATCH_SOURCE_TYPE_DECL(interval);

// Sets a cancel handler. Releasing the source without cancelling it traps.
#ifdef __BLOCKS__
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_source_set_mandatory_cancel_handler(dispatch_source_t source, dispatch_block_t handler);
#endif
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_source_set_mandatory_cancel_handler_f(dispatch_source_t source, dispatch_function_t handler);

// Cancels the source and waits until no handler runs or will run. Traps if the source has a cancel handler or is
// suspended, and in the source's own handlers.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_source_cancel_and_wait(dispatch_source_t source);

typedef struct dispatch_source_extended_data_s {
  unsigned long data;
  unsigned long status;
} *dispatch_source_extended_data_t;

// Returns the number of bytes filled in.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW size_t
dispatch_source_get_extended_data(dispatch_source_t source, dispatch_source_extended_data_t data, size_t size);

// The present on the clock that includes sleep.
#define DISPATCH_MONOTONICTIME_NOW (1ull << 63)

// --- Data ---

// The data object does not free the buffer.
#define DISPATCH_DATA_DESTRUCTOR_NONE (_dispatch_data_destructor_none)
DISPATCH_DATA_DESTRUCTOR_TYPE_DECL(none);

// Returns an object whose bytes the caller fills in, and their address.
DISPATCH_EXPORT DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_data_t
dispatch_data_create_alloc(size_t size, void *_Nullable *_Nullable buffer_ptr);

typedef const struct dispatch_data_format_type_s *dispatch_data_format_type_t;
#define DISPATCH_DATA_FORMAT_TYPE_DECL(name) \
  DISPATCH_EXPORT const struct dispatch_data_format_type_s _dispatch_data_format_type_##name
#define DISPATCH_DATA_FORMAT_TYPE_NONE (&_dispatch_data_format_type_none)
DISPATCH_DATA_FORMAT_TYPE_DECL(none);
#define DISPATCH_DATA_FORMAT_TYPE_BASE32 (&_dispatch_data_format_type_base32)
DISPATCH_DATA_FORMAT_TYPE_DECL(base32);
#define DISPATCH_DATA_FORMAT_TYPE_BASE32HEX (&_dispatch_data_format_type_base32hex)
DISPATCH_DATA_FORMAT_TYPE_DECL(base32hex);
#define DISPATCH_DATA_FORMAT_TYPE_BASE64 (&_dispatch_data_format_type_base64)
DISPATCH_DATA_FORMAT_TYPE_DECL(base64);
#define DISPATCH_DATA_FORMAT_TYPE_UTF8 (&_dispatch_data_format_type_utf8)
DISPATCH_DATA_FORMAT_TYPE_DECL(utf8);
#define DISPATCH_DATA_FORMAT_TYPE_UTF16LE (&_dispatch_data_format_type_utf16le)
DISPATCH_DATA_FORMAT_TYPE_DECL(utf16le);
#define DISPATCH_DATA_FORMAT_TYPE_UTF16BE (&_dispatch_data_format_type_utf16be)
DISPATCH_DATA_FORMAT_TYPE_DECL(utf16be);
#define DISPATCH_DATA_FORMAT_TYPE_UTF_ANY (&_dispatch_data_format_type_utf_any)
DISPATCH_DATA_FORMAT_TYPE_DECL(utf_any);

// Converts to another format. NULL if the bytes are not valid in the input format, or the conversion does not exist.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_data_t _Nullable
    dispatch_data_create_with_transform(dispatch_data_t data, dispatch_data_format_type_t input_type,
                                        dispatch_data_format_type_t output_type);

// --- Input and output ---

// No effect.
DISPATCH_EXPORT void _dispatch_iocntl(uint32_t param, uint64_t value);

// --- Measurement ---

// The mean time of one of `count` runs, in nanoseconds.
#ifdef __BLOCKS__
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NOTHROW uint64_t
dispatch_benchmark(size_t count, DISPATCH_NOESCAPE dispatch_block_t block);
#endif
DISPATCH_EXPORT DISPATCH_NONNULL3 DISPATCH_NOTHROW uint64_t
dispatch_benchmark_f(size_t count, void *_Nullable context, dispatch_function_t work);

// --- Objects ---

typedef struct _os_object_s *_os_object_t;

DISPATCH_EXPORT DISPATCH_WARN_RESULT _os_object_t _os_object_alloc(const void *_Nullable cls, size_t size);
DISPATCH_EXPORT DISPATCH_WARN_RESULT _os_object_t _os_object_alloc_realized(const void *cls, size_t size);
DISPATCH_EXPORT void _os_object_dealloc(_os_object_t object);
DISPATCH_EXPORT _os_object_t _os_object_retain_with_resurrect(_os_object_t object);
DISPATCH_EXPORT _os_object_t _os_object_retain_internal(_os_object_t object);
DISPATCH_EXPORT void _os_object_release_internal(_os_object_t object);
DISPATCH_EXPORT _os_object_t _os_object_retain_internal_n(_os_object_t object, uint16_t count);
DISPATCH_EXPORT void _os_object_release_internal_n(_os_object_t object, uint16_t count);

// --- Diagnostics ---

DISPATCH_EXPORT DISPATCH_NOTHROW void _dispatch_bug(size_t line, long value);
DISPATCH_EXPORT DISPATCH_NOTHROW __attribute__((__format__(__printf__, 1, 2))) void
_dispatch_log(const char *message, ...);
DISPATCH_EXPORT void *_Nullable _dispatch_wait_for_enqueuer(void *_Nullable *_Nonnull pointer);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
