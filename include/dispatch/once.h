// Initialization that runs once per process.

#ifndef __DISPATCH_ONCE__
#define __DISPATCH_ONCE__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

__BEGIN_DECLS

// Must start as zero and have static storage. All ones when the work is done; where an ordinary load suffices, the
// inline functions below test for that.
DISPATCH_SWIFT3_UNAVAILABLE("a global or static variable is initialised lazily, and once")
typedef intptr_t dispatch_once_t;

#if defined(__x86_64__) || defined(__i386__) || defined(__s390x__)
#define DISPATCH_ONCE_INLINE_FASTPATH 1
#else
#define DISPATCH_ONCE_INLINE_FASTPATH 0
#endif

#ifdef __BLOCKS__
// Runs the block unless a block has already run for this predicate. Returns when that run is complete, on whichever
// thread it runs. Traps if the block calls this function with the same predicate.
DISPATCH_EXPORT DISPATCH_NONNULL_ALL DISPATCH_NOTHROW
DISPATCH_SWIFT3_UNAVAILABLE("a global or static variable is initialised lazily, and once") void
dispatch_once(dispatch_once_t *predicate, DISPATCH_NOESCAPE dispatch_block_t block);

#if DISPATCH_ONCE_INLINE_FASTPATH
DISPATCH_INLINE DISPATCH_ALWAYS_INLINE DISPATCH_NONNULL_ALL DISPATCH_NOTHROW
DISPATCH_SWIFT3_UNAVAILABLE("a global or static variable is initialised lazily, and once") void
_dispatch_once(dispatch_once_t *predicate, DISPATCH_NOESCAPE dispatch_block_t block) {
  if (DISPATCH_EXPECT(*predicate == ~(dispatch_once_t)0, 1)) {
    dispatch_compiler_barrier();
  } else {
    dispatch_once(predicate, block);
  }
  DISPATCH_COMPILER_CAN_ASSUME(*predicate == ~(dispatch_once_t)0);
}
#undef dispatch_once
#define dispatch_once _dispatch_once
#endif
#endif

DISPATCH_EXPORT DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW
DISPATCH_SWIFT3_UNAVAILABLE("a global or static variable is initialised lazily, and once") void
dispatch_once_f(dispatch_once_t *predicate, void *_Nullable context, dispatch_function_t function);

#if DISPATCH_ONCE_INLINE_FASTPATH
DISPATCH_INLINE DISPATCH_ALWAYS_INLINE DISPATCH_NONNULL1 DISPATCH_NONNULL3 DISPATCH_NOTHROW
DISPATCH_SWIFT3_UNAVAILABLE("a global or static variable is initialised lazily, and once") void
_dispatch_once_f(dispatch_once_t *predicate, void *_Nullable context, dispatch_function_t function) {
  if (DISPATCH_EXPECT(*predicate == ~(dispatch_once_t)0, 1)) {
    dispatch_compiler_barrier();
  } else {
    dispatch_once_f(predicate, context, function);
  }
  DISPATCH_COMPILER_CAN_ASSUME(*predicate == ~(dispatch_once_t)0);
}
#undef dispatch_once_f
#define dispatch_once_f _dispatch_once_f
#endif

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
