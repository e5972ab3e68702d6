// Annotations, which have no effect at run time, and the type of a submitted function.

#ifndef __DISPATCH_BASE__
#define __DISPATCH_BASE__

#ifndef __DISPATCH_INDIRECT__
#error "Include <dispatch/dispatch.h>; this header is a part of it."
#endif

#include <os/generic_base.h>

#ifdef __GNUC__
#define DISPATCH_NORETURN __attribute__((__noreturn__))
#define DISPATCH_NOTHROW __attribute__((__nothrow__))
#define DISPATCH_NONNULL1 __attribute__((__nonnull__(1)))
#define DISPATCH_NONNULL2 __attribute__((__nonnull__(2)))
#define DISPATCH_NONNULL3 __attribute__((__nonnull__(3)))
#define DISPATCH_NONNULL4 __attribute__((__nonnull__(4)))
#define DISPATCH_NONNULL5 __attribute__((__nonnull__(5)))
#define DISPATCH_NONNULL6 __attribute__((__nonnull__(6)))
#define DISPATCH_NONNULL7 __attribute__((__nonnull__(7)))
#define DISPATCH_NONNULL_ALL __attribute__((__nonnull__))
#define DISPATCH_SENTINEL __attribute__((__sentinel__))
#define DISPATCH_PURE __attribute__((__pure__))
#define DISPATCH_CONST __attribute__((__const__))
#define DISPATCH_WARN_RESULT __attribute__((__warn_unused_result__))
#define DISPATCH_MALLOC __attribute__((__malloc__))
#define DISPATCH_ALWAYS_INLINE __attribute__((__always_inline__))
#define DISPATCH_INLINE static __inline__
#define DISPATCH_EXPECT(x, v) __builtin_expect((x), (v))
#define dispatch_compiler_barrier() __asm__ __volatile__("" ::: "memory")
#else
#define DISPATCH_NORETURN
#define DISPATCH_NOTHROW
#define DISPATCH_NONNULL1
#define DISPATCH_NONNULL2
#define DISPATCH_NONNULL3
#define DISPATCH_NONNULL4
#define DISPATCH_NONNULL5
#define DISPATCH_NONNULL6
#define DISPATCH_NONNULL7
#define DISPATCH_NONNULL_ALL
#define DISPATCH_SENTINEL
#define DISPATCH_PURE
#define DISPATCH_CONST
#define DISPATCH_WARN_RESULT
#define DISPATCH_MALLOC
#define DISPATCH_ALWAYS_INLINE
#define DISPATCH_INLINE static inline
#define DISPATCH_EXPECT(x, v) (x)
#define dispatch_compiler_barrier() \
  do {                              \
  } while (0)
#endif

#if __has_attribute(unavailable)
#define DISPATCH_UNAVAILABLE __attribute__((__unavailable__))
#define DISPATCH_UNAVAILABLE_MSG(msg) __attribute__((__unavailable__(msg)))
#else
#define DISPATCH_UNAVAILABLE
#define DISPATCH_UNAVAILABLE_MSG(msg)
#endif

#ifdef __linux__
#define DISPATCH_LINUX_UNAVAILABLE() DISPATCH_UNAVAILABLE_MSG("Not available on Linux")
#else
#define DISPATCH_LINUX_UNAVAILABLE()
#endif
#define DISPATCH_FREEBSD_UNAVAILABLE()

#if defined(__cplusplus) && __cplusplus >= 201703L
#define DISPATCH_FALLTHROUGH [[fallthrough]]
#elif defined(__cplusplus) && __cplusplus >= 201103L && defined(__clang__)
#define DISPATCH_FALLTHROUGH [[clang::fallthrough]]
#elif defined(__cplusplus) && __cplusplus >= 201103L && defined(__GNUC__) && __GNUC__ >= 7
#define DISPATCH_FALLTHROUGH [[gnu::fallthrough]]
#elif !defined(__cplusplus) && __has_attribute(fallthrough)
#define DISPATCH_FALLTHROUGH __attribute__((__fallthrough__))
#else
#define DISPATCH_FALLTHROUGH
#endif

#ifndef DISPATCH_ALIAS_V2
#define DISPATCH_ALIAS_V2(sym)
#endif

#ifndef DISPATCH_EXTERN
#ifdef __cplusplus
#define DISPATCH_EXTERN extern "C"
#else
#define DISPATCH_EXTERN extern
#endif
#endif

// Programs that link the library statically define `dispatch_STATIC`, so that these symbols are not exported again.
#if !defined(__GNUC__)
#define DISPATCH_EXPORT DISPATCH_EXTERN
#elif defined(dispatch_STATIC)
#define DISPATCH_EXPORT DISPATCH_EXTERN __attribute__((__visibility__("hidden")))
#else
#define DISPATCH_EXPORT DISPATCH_EXTERN __attribute__((__visibility__("default")))
#endif

#if __has_attribute(not_tail_called)
#define DISPATCH_NOT_TAIL_CALLED __attribute__((__not_tail_called__))
#else
#define DISPATCH_NOT_TAIL_CALLED
#endif

#if __has_builtin(__builtin_assume)
#define DISPATCH_COMPILER_CAN_ASSUME(expr) __builtin_assume(expr)
#else
#define DISPATCH_COMPILER_CAN_ASSUME(expr) ((void)(expr))
#endif

#if __has_attribute(noescape)
#define DISPATCH_NOESCAPE __attribute__((__noescape__))
#else
#define DISPATCH_NOESCAPE
#endif

#if __has_attribute(cold)
#define DISPATCH_COLD __attribute__((__cold__))
#else
#define DISPATCH_COLD
#endif

#if __has_feature(assume_nonnull)
#define DISPATCH_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define DISPATCH_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#else
#define DISPATCH_ASSUME_NONNULL_BEGIN
#define DISPATCH_ASSUME_NONNULL_END
#endif

// Nullability and enumerations with a fixed type are extensions; without this, -pedantic warns in each header.
#ifdef __clang__
#define DISPATCH_HEADER_BEGIN                                          \
  _Pragma("clang diagnostic push")                                     \
  _Pragma("clang diagnostic ignored \"-Wunknown-warning-option\"")     \
  _Pragma("clang diagnostic ignored \"-Wnullability-extension\"")      \
  _Pragma("clang diagnostic ignored \"-Wmicrosoft-fixed-enum\"")       \
  _Pragma("clang diagnostic ignored \"-Wfixed-enum-extension\"")       \
  _Pragma("clang diagnostic ignored \"-Wc11-extensions\"")             \
  _Pragma("clang diagnostic ignored \"-Wc23-extensions\"")             \
  _Pragma("clang diagnostic ignored \"-Wnested-anon-types\"")
#define DISPATCH_HEADER_END _Pragma("clang diagnostic pop")
#else
#define DISPATCH_HEADER_BEGIN
#define DISPATCH_HEADER_END
#endif

#if !__has_feature(nullability)
#ifndef _Nullable
#define _Nullable
#endif
#ifndef _Nonnull
#define _Nonnull
#endif
#ifndef _Null_unspecified
#define _Null_unspecified
#endif
#endif

#ifndef DISPATCH_RETURNS_RETAINED_BLOCK
#if __has_attribute(ns_returns_retained)
#define DISPATCH_RETURNS_RETAINED_BLOCK __attribute__((__ns_returns_retained__))
#else
#define DISPATCH_RETURNS_RETAINED_BLOCK
#endif
#endif

#if __has_feature(objc_fixed_enum) || __has_extension(cxx_strong_enums)
#define DISPATCH_ENUM(name, type, ...) typedef enum : type { __VA_ARGS__ } name##_t
#else
#define DISPATCH_ENUM(name, type, ...) \
  enum { __VA_ARGS__ };                \
  typedef type name##_t
#endif

#if __has_feature(enumerator_attributes)
#define DISPATCH_ENUM_API_AVAILABLE(...) API_AVAILABLE(__VA_ARGS__)
#define DISPATCH_ENUM_API_DEPRECATED(...) API_DEPRECATED(__VA_ARGS__)
#define DISPATCH_ENUM_API_DEPRECATED_WITH_REPLACEMENT(...) API_DEPRECATED_WITH_REPLACEMENT(__VA_ARGS__)
#else
#define DISPATCH_ENUM_API_AVAILABLE(...)
#define DISPATCH_ENUM_API_DEPRECATED(...)
#define DISPATCH_ENUM_API_DEPRECATED_WITH_REPLACEMENT(...)
#endif

#if defined(SWIFT_SDK_OVERLAY_DISPATCH_EPOCH) && SWIFT_SDK_OVERLAY_DISPATCH_EPOCH >= 2
#define DISPATCH_SWIFT3_OVERLAY 1
#else
#define DISPATCH_SWIFT3_OVERLAY 0
#endif

#if __has_feature(attribute_availability_swift)
#define DISPATCH_SWIFT_UNAVAILABLE(_msg) \
  __attribute__((__availability__(swift, unavailable, message = _msg)))
#else
#define DISPATCH_SWIFT_UNAVAILABLE(_msg)
#endif

#if DISPATCH_SWIFT3_OVERLAY
#define DISPATCH_SWIFT3_UNAVAILABLE(_msg) DISPATCH_SWIFT_UNAVAILABLE(_msg)
#else
#define DISPATCH_SWIFT3_UNAVAILABLE(_msg)
#endif

#if __has_attribute(swift_private)
#define DISPATCH_REFINED_FOR_SWIFT __attribute__((__swift_private__))
#else
#define DISPATCH_REFINED_FOR_SWIFT
#endif

#if __has_attribute(swift_name)
#define DISPATCH_SWIFT_NAME(_name) __attribute__((__swift_name__(#_name)))
#else
#define DISPATCH_SWIFT_NAME(_name)
#endif

#ifdef __cplusplus
#define DISPATCH_TRANSPARENT_UNION
#else
#define DISPATCH_TRANSPARENT_UNION __attribute__((__transparent_union__))
#endif

DISPATCH_HEADER_BEGIN

// The function that an `_f` variant calls with its context.
typedef void (*dispatch_function_t)(void *_Nullable);

DISPATCH_HEADER_END

#endif
