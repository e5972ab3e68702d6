// Data objects: bytes that never change, in one piece or in several, shared without being copied.

#ifndef __DISPATCH_DATA__
#define __DISPATCH_DATA__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

__BEGIN_DECLS

DISPATCH_DATA_DECL(dispatch_data);

// No bytes at all. There is one such object.
#define dispatch_data_empty DISPATCH_GLOBAL_OBJECT(dispatch_data_t, _dispatch_data_empty)
DISPATCH_EXPORT struct dispatch_data_s _dispatch_data_empty;

#ifdef __BLOCKS__
#define DISPATCH_DATA_DESTRUCTOR_TYPE_DECL(name) \
  DISPATCH_EXPORT const dispatch_block_t _dispatch_data_destructor_##name
#else
#define DISPATCH_DATA_DESTRUCTOR_TYPE_DECL(name) \
  DISPATCH_EXPORT const dispatch_function_t _dispatch_data_destructor_##name
#endif

// What becomes of a buffer. By default the bytes are copied, and the buffer stays the caller's.
#define DISPATCH_DATA_DESTRUCTOR_DEFAULT NULL
// It came from `malloc`; the data object frees it.
#define DISPATCH_DATA_DESTRUCTOR_FREE (_dispatch_data_destructor_free)
DISPATCH_DATA_DESTRUCTOR_TYPE_DECL(free);
// It came from `mmap`; the data object unmaps it.
#define DISPATCH_DATA_DESTRUCTOR_MUNMAP (_dispatch_data_destructor_munmap)
DISPATCH_DATA_DESTRUCTOR_TYPE_DECL(munmap);

#ifdef __BLOCKS__
// An object for `size` bytes. A destructor of the program's own runs on `queue` (NULL: a global one) when the last
// object that refers to the buffer is gone, and at once if there are no bytes.
DISPATCH_EXPORT DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_data_t
dispatch_data_create(const void *buffer, size_t size, dispatch_queue_t _Nullable queue,
                     dispatch_block_t _Nullable destructor);
#endif

// The same with a function, which is called with the buffer. The three destructors above will do too.
DISPATCH_EXPORT DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_data_t
dispatch_data_create_f(const void *buffer, size_t size, dispatch_queue_t _Nullable queue,
                       dispatch_function_t _Nullable destructor);

DISPATCH_EXPORT DISPATCH_PURE DISPATCH_NONNULL1 DISPATCH_NOTHROW size_t
dispatch_data_get_size(dispatch_data_t data);

// The same bytes in one piece, whose address lives as long as the result. In one piece already: the same object.
// Of the empty object the address is NULL.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_data_t
dispatch_data_create_map(dispatch_data_t data, const void *_Nullable *_Nullable buffer_ptr,
                         size_t *_Nullable size_ptr);

// The bytes of one after those of the other; nothing is copied.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_data_t
    dispatch_data_create_concat(dispatch_data_t data1, dispatch_data_t data2);

// `length` bytes from `offset`, fewer if the data ends before; nothing is copied.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_data_t
dispatch_data_create_subrange(dispatch_data_t data, size_t offset, size_t length);

#ifdef __BLOCKS__
typedef bool (^dispatch_data_applier_t)(dispatch_data_t region, size_t offset, const void *buffer, size_t size);

// Shows each piece, in order, until the applier returns false. Whether it came to the end.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW bool
dispatch_data_apply(dispatch_data_t data, DISPATCH_NOESCAPE dispatch_data_applier_t applier);
#endif

typedef bool (*dispatch_data_applier_function_t)(void *_Nullable context, dispatch_data_t region, size_t offset,
                                                 const void *buffer, size_t size);

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW bool
dispatch_data_apply_f(dispatch_data_t data, void *_Nullable context, dispatch_data_applier_function_t applier);

// The piece that holds the byte at `location`, and where it begins. Behind the end: the empty object, and the
// size.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT
    DISPATCH_NOTHROW dispatch_data_t
    dispatch_data_copy_region(dispatch_data_t data, size_t location, size_t *offset_ptr);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
