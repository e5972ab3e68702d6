// Input and output that nobody waits for.

#ifndef __DISPATCH_IO__
#define __DISPATCH_IO__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

__BEGIN_DECLS

typedef int dispatch_fd_t;

// Errors are numbers of <errno.h>, 0 for none. A descriptor is the library's from the call on until the handler
// (of a channel: the cleanup handler) has been called.

// --- One reading, one writing ---

#ifdef __BLOCKS__
// Reads what there is, at most `length` bytes, waiting for the first. No bytes and no error is the end of the file.
DISPATCH_EXPORT DISPATCH_NONNULL3 DISPATCH_NONNULL4 DISPATCH_NOTHROW void
dispatch_read(dispatch_fd_t fd, size_t length, dispatch_queue_t queue,
              void (^handler)(dispatch_data_t data, int error));

// Writes all bytes. The handler gets those that were not written, NULL if all were.
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
// Operations one after the other, at the file's position.
#define DISPATCH_IO_STREAM 0
// Operations side by side, at offsets from the position at which the channel found the file.
#define DISPATCH_IO_RANDOM 1

typedef unsigned long dispatch_io_close_flags_t;
// What is under way ends early, with ECANCELED.
#define DISPATCH_IO_STOP 0x1

typedef unsigned long dispatch_io_interval_flags_t;
// A call is made at each interval, though there be little to deliver, or nothing.
#define DISPATCH_IO_STRICT_INTERVAL 0x1

#ifdef __BLOCKS__
// A channel for a descriptor. The cleanup handler is called once, on `queue`, when the descriptor is the program's
// again. NULL for a bad type; what else is wrong, the cleanup handler is told.
DISPATCH_EXPORT DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_io_t
dispatch_io_create(dispatch_io_type_t type, dispatch_fd_t fd, dispatch_queue_t queue,
                   void (^cleanup_handler)(int error));

// A channel for a file that is opened for the first operation and closed by the channel. NULL for a path that is
// not absolute.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_io_t
    dispatch_io_create_with_path(dispatch_io_type_t type, const char *path, int oflag, mode_t mode,
                                 dispatch_queue_t queue, void (^cleanup_handler)(int error));

// A further channel for the descriptor, or path, of one that exists.
DISPATCH_EXPORT DISPATCH_NONNULL2 DISPATCH_MALLOC DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_io_t
    dispatch_io_create_with_io(dispatch_io_type_t type, dispatch_io_t io, dispatch_queue_t queue,
                               void (^cleanup_handler)(int error));

// Called at least once, never twice at a time; `done` says that it is the last time.
typedef void (^dispatch_io_handler_t)(bool done, dispatch_data_t _Nullable data, int error);

// Reads up to `length` bytes (SIZE_MAX: to the end). The offset counts for random channels only. The handler gets
// the bytes as they come.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL4 DISPATCH_NONNULL5 DISPATCH_NOTHROW void
dispatch_io_read(dispatch_io_t channel, off_t offset, size_t length, dispatch_queue_t queue,
                 dispatch_io_handler_t io_handler);

// Writes the bytes. The handler gets what is left to be written.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NONNULL4 DISPATCH_NONNULL5 DISPATCH_NOTHROW void
dispatch_io_write(dispatch_io_t channel, off_t offset, dispatch_data_t data, dispatch_queue_t queue,
                  dispatch_io_handler_t io_handler);

// Runs the block when all earlier operations on the descriptor are through and before any later one begins, on
// the channel's target. Handlers are not ordered with it.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW void
dispatch_io_barrier(dispatch_io_t channel, dispatch_block_t barrier);
#endif

// The same seven with functions.

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

// Takes no further operations: they end with ECANCELED. Without flags those under way come to their end.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_io_close(dispatch_io_t channel, dispatch_io_close_flags_t flags);

// The descriptor; -1 while the file is not open. From within a barrier the file is opened for it.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_fd_t
dispatch_io_get_descriptor(dispatch_io_t channel);

// At most so many bytes in one call of a handler. Without limit by default.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_io_set_high_water(dispatch_io_t channel, size_t high_water);

// At least so many bytes in each call that is not the last.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_io_set_low_water(dispatch_io_t channel, size_t low_water);

// A call every `interval` nanoseconds if there is enough to deliver, or by the flag in any case.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NOTHROW void
dispatch_io_set_interval(dispatch_io_t channel, uint64_t interval, dispatch_io_interval_flags_t flags);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
