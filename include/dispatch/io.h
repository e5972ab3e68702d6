// Asynchronous input and output.

#ifndef __DISPATCH_IO__
#define __DISPATCH_IO__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

__BEGIN_DECLS

typedef int dispatch_fd_t;

// Errors are values from <errno.h>, or 0. The library controls a descriptor from the call until the handler (for a
// channel: the cleanup handler) has been called.

// --- Single operations ---

#ifdef __BLOCKS__
// Reads the available bytes, at most `length`; waits for the first one. No bytes and no error mean the end of the file.
DISPATCH_EXPORT DISPATCH_NONNULL3 DISPATCH_NONNULL4 DISPATCH_NOTHROW void
dispatch_read(dispatch_fd_t fd, size_t length, dispatch_queue_t queue,
              void (^handler)(dispatch_data_t data, int error));

// Writes all bytes. The handler receives the bytes that were not written, or NULL if all were.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NONNULL3 DISPATCH_NONNULL4 DISPATCH_NOTHROW void
dispatch_write(dispatch_fd_t fd, dispatch_data_t data, dispatch_queue_t queue,
               void (^handler)(dispatch_data_t _Nullable data, int error));
#endif

DISPATCH_EXPORT DISPATCH_NONNULL3 DISPATCH_NONNULL5 DISPATCH_NOTHROW void
dispatch_read_f(dispatch_fd_t fd, size_t length, dispatch_queue_t queue, void *_Nullable context,
                void (*handler)(void *_Nullable context, dispatch_data_t data, int error));

DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_NONNULL3 DISPATCH_NONNULL5 DISPATCH_NOTHROW void
dispatch_write_f(dispatch_fd_t fd, dispatch_data_t data, dispatch_queue_t queue, void *_Nullable context,
                 void (*handler)(void *_Nullable context, dispatch_data_t _Nullable data, int error));

// --- Channels ---

DISPATCH_DECL(dispatch_io);

typedef unsigned long dispatch_io_type_t;
// Operations run in order, at the file's position.
#define DISPATCH_IO_STREAM 0
// Operations run concurrently, at offsets from the position that the file had when the channel was created.
#define DISPATCH_IO_RANDOM 1

typedef unsigned long dispatch_io_close_flags_t;
// Operations in flight end early, with ECANCELED.
#define DISPATCH_IO_STOP 0x1

typedef unsigned long dispatch_io_interval_flags_t;
// The handler is called at each interval, even with little or no data.
#define DISPATCH_IO_STRICT_INTERVAL 0x1

#ifdef __BLOCKS__
// Creates a channel for a descriptor. The cleanup handler is called once, on `queue`, when the program may use the
// descriptor again. NULL for an invalid type; the cleanup handler receives every other error.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_io_t
dispatch_io_create(dispatch_io_type_t type, dispatch_fd_t fd, dispatch_queue_t queue,
                   void (^cleanup_handler)(int error));

// Creates a channel for a file. The first operation opens the file, and the channel closes it. NULL for a relative
// path.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_io_t
    dispatch_io_create_with_path(dispatch_io_type_t type, const char *path, int oflag, mode_t mode,
                                 dispatch_queue_t queue, void (^cleanup_handler)(int error));

// Creates another channel for the descriptor or path of an existing one.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_io_t
    dispatch_io_create_with_io(dispatch_io_type_t type, dispatch_io_t io, dispatch_queue_t queue,
                               void (^cleanup_handler)(int error));

// Called at least once, and never concurrently; `done` marks the last call.
typedef void (^dispatch_io_handler_t)(bool done, dispatch_data_t _Nullable data, int error);

// Reads up to `length` bytes (SIZE_MAX: to the end of the file). Stream channels ignore the offset. The handler
// receives the bytes as they arrive.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL4 DISPATCH_NONNULL5 DISPATCH_NOTHROW void
dispatch_io_read(dispatch_io_t channel, off_t offset, size_t length, dispatch_queue_t queue,
                 dispatch_io_handler_t io_handler);

// Writes the bytes. The handler receives the bytes that remain.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NONNULL4 DISPATCH_NONNULL5 DISPATCH_NOTHROW void
dispatch_io_write(dispatch_io_t channel, off_t offset, dispatch_data_t data, dispatch_queue_t queue,
                  dispatch_io_handler_t io_handler);

// Runs the block on the channel's target after all earlier operations on the descriptor and before any later one.
// Handlers are not ordered with it.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_io_barrier(dispatch_io_t channel, dispatch_block_t barrier);
#endif

// The seven functions above, with functions instead of blocks.

DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_io_t
dispatch_io_create_f(dispatch_io_type_t type, dispatch_fd_t fd, dispatch_queue_t queue, void *_Nullable context,
                     void (*cleanup_handler)(void *_Nullable context, int error));

DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_io_t
    dispatch_io_create_with_path_f(dispatch_io_type_t type, const char *path, int oflag, mode_t mode,
                                   dispatch_queue_t queue, void *_Nullable context,
                                   void (*cleanup_handler)(void *_Nullable context, int error));

DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_io_t
    dispatch_io_create_with_io_f(dispatch_io_type_t type, dispatch_io_t io, dispatch_queue_t queue,
                                 void *_Nullable context,
                                 void (*cleanup_handler)(void *_Nullable context, int error));

typedef void (*dispatch_io_handler_function_t)(void *_Nullable context, bool done,
                                               dispatch_data_t _Nullable data, int error);

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL4 DISPATCH_NONNULL6 DISPATCH_NOTHROW void
dispatch_io_read_f(dispatch_io_t channel, off_t offset, size_t length, dispatch_queue_t queue,
                   void *_Nullable context, dispatch_io_handler_function_t io_handler);

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NONNULL4 DISPATCH_NONNULL6 DISPATCH_NOTHROW void
dispatch_io_write_f(dispatch_io_t channel, off_t offset, dispatch_data_t data, dispatch_queue_t queue,
                    void *_Nullable context, dispatch_io_handler_function_t io_handler);

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW void
dispatch_io_barrier_f(dispatch_io_t channel, void *_Nullable context, dispatch_function_t barrier);

// Closes the channel: later operations end with ECANCELED. Without flags, operations in flight complete.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_io_close(dispatch_io_t channel, dispatch_io_close_flags_t flags);

// The descriptor; -1 while the file is not open. A call from a barrier opens the file.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_fd_t
dispatch_io_get_descriptor(dispatch_io_t channel);

// Limits the bytes in one call of a handler. No limit by default.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_io_set_high_water(dispatch_io_t channel, size_t high_water);

// Sets the minimum number of bytes in each call except the last.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_io_set_low_water(dispatch_io_t channel, size_t low_water);

// Calls the handler every `interval` nanoseconds: if enough bytes are available, or always with the flag.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_io_set_interval(dispatch_io_t channel, uint64_t interval, dispatch_io_interval_flags_t flags);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
