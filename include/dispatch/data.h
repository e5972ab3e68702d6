// Data objects: immutable bytes in one or more pieces, shared without copying.

#ifndef __DISPATCH_DATA__
#define __DISPATCH_DATA__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

__BEGIN_DECLS

DISPATCH_DATA_DECL(dispatch_data);

// The only data object without bytes.
#define dispatch_data_empty DISPATCH_GLOBAL_OBJECT(dispatch_data_t, _dispatch_data_empty)
DISPATCH_EXPORT struct dispatch_data_s _dispatch_data_empty;

#ifdef __BLOCKS__
#define DISPATCH_DATA_DESTRUCTOR_TYPE_DECL(name) \
  DISPATCH_EXPORT const dispatch_block_t _dispatch_data_destructor_##name
#else
#define DISPATCH_DATA_DESTRUCTOR_TYPE_DECL(name) \
  DISPATCH_EXPORT const dispatch_function_t _dispatch_data_destructor_##name
#endif

// Buffer ownership. By default the bytes are copied, and the caller keeps the buffer.
#define DISPATCH_DATA_DESTRUCTOR_DEFAULT NULL
// The buffer came from `malloc`; the data object frees it.
#define DISPATCH_DATA_DESTRUCTOR_FREE (_dispatch_data_destructor_free)
DISPATCH_DATA_DESTRUCTOR_TYPE_DECL(free);
// The buffer came from `mmap`; the data object unmaps it.
#define DISPATCH_DATA_DESTRUCTOR_MUNMAP (_dispatch_data_destructor_munmap)
DISPATCH_DATA_DESTRUCTOR_TYPE_DECL(munmap);

#ifdef __BLOCKS__
// Returns an object with `size` bytes. The program's own destructor runs on `queue` (NULL: a global queue) after the
// last object that refers to the buffer is released, and at once if `size` is 0.
DISPATCH_EXPORT DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_data_t
dispatch_data_create(const void *buffer, size_t size, dispatch_queue_t _Nullable queue,
                     dispatch_block_t _Nullable destructor);
#endif

// With a function, which is called with the buffer. The predefined destructors above are accepted as well.
DISPATCH_EXPORT DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_data_t
dispatch_data_create_f(const void *buffer, size_t size, dispatch_queue_t _Nullable queue,
                       dispatch_function_t _Nullable destructor);

DISPATCH_EXPORT DISPATCH_PURE DISPATCH_NONNULL1 DISPATCH_NOTHROW size_t
dispatch_data_get_size(dispatch_data_t data);

// Returns the bytes in one piece, whose address is valid until the result is released. Contiguous data is returned as
// it is. The address is NULL for empty data.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_data_t
dispatch_data_create_map(dispatch_data_t data, const void *_Nullable *_Nullable buffer_ptr,
                         size_t *_Nullable size_ptr);

// Returns the bytes of `data1` followed by those of `data2`, without copying.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW
    dispatch_data_t
    dispatch_data_create_concat(dispatch_data_t data1, dispatch_data_t data2);

// Returns `length` bytes from `offset`, or fewer if the data ends earlier, without copying.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT DISPATCH_NOTHROW dispatch_data_t
dispatch_data_create_subrange(dispatch_data_t data, size_t offset, size_t length);

#ifdef __BLOCKS__
typedef bool (^dispatch_data_applier_t)(dispatch_data_t region, size_t offset, const void *buffer, size_t size);

// Calls the applier with each piece in order, until it returns false. Returns whether every call returned true.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW bool
dispatch_data_apply(dispatch_data_t data, DISPATCH_NOESCAPE dispatch_data_applier_t applier);
#endif

typedef bool (*dispatch_data_applier_function_t)(void *_Nullable context, dispatch_data_t region, size_t offset,
                                                 const void *buffer, size_t size);

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW bool
dispatch_data_apply_f(dispatch_data_t data, void *_Nullable context, dispatch_data_applier_function_t applier);

// Returns the piece that contains the byte at `location`, and its offset. Past the end: the empty object and the size.
DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_RETURNS_RETAINED DISPATCH_WARN_RESULT
    DISPATCH_NOTHROW dispatch_data_t
    dispatch_data_copy_region(dispatch_data_t data, size_t location, size_t *offset_ptr);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
