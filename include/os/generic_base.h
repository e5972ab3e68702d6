// The basis of all headers: declarations with C linkage, and feature tests that are false in compilers without them.

#ifndef __OS_GENERIC_BASE__
#define __OS_GENERIC_BASE__

#if defined(__has_include)
#if __has_include(<sys/cdefs.h>)
#include <sys/cdefs.h>
#endif
#else
#define __has_include(x) 0
#endif

#if !defined(__BEGIN_DECLS) && !defined(__END_DECLS)
#ifdef __cplusplus
#define __BEGIN_DECLS extern "C" {
#define __END_DECLS }
#else
#define __BEGIN_DECLS
#define __END_DECLS
#endif
#endif

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#ifndef __has_attribute
#define __has_attribute(x) 0
#endif
#ifndef __has_extension
#define __has_extension(x) 0
#endif

#endif
