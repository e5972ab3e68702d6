// The reference-counted object below all dispatch objects. Linux has no Objective-C objects, so the macros that would
// choose between the two kinds expand to plain C.

#ifndef __OS_OBJECT__
#define __OS_OBJECT__

#include <os/generic_unix_base.h>

#ifndef OS_OBJECT_HAVE_OBJC_SUPPORT
#define OS_OBJECT_HAVE_OBJC_SUPPORT 0
#endif
#undef OS_OBJECT_USE_OBJC
#define OS_OBJECT_USE_OBJC 0
#ifndef OS_OBJECT_SWIFT3
#define OS_OBJECT_SWIFT3 0
#endif

#define OS_OBJECT_RETURNS_RETAINED
#define OS_OBJECT_CONSUMED
#define OS_OBJECT_BRIDGE
#define OS_WARN_RESULT_NEEDS_RELEASE OS_WARN_RESULT
#define OS_OBJECT_OBJC_RUNTIME_VISIBLE
#define OS_OBJECT_USE_OBJC_RETAIN_RELEASE 0
#define OS_OBJECT_DECL_CLASS(name) typedef struct name##_s *name##_t
#define OS_OBJECT_GLOBAL_OBJECT(type, object) ((OS_OBJECT_BRIDGE type) & (object))

__BEGIN_DECLS

struct _os_object_s;
extern struct _os_object_s *_os_object_retain(struct _os_object_s *object);
extern void _os_object_release(struct _os_object_s *object);

// Adds a reference and returns the object, on any thread. Inline, because the library exports only the name with an
// underscore.
#ifdef __GNUC__
__attribute__((__unused__))
#endif
OS_SWIFT_UNAVAILABLE("dispatch objects are counted by ARC in Swift") static __inline__ void *
os_retain(void *object) {
  return (void *)_os_object_retain((struct _os_object_s *)object);
}

// Releases a reference. After the last one, the object is destroyed later, on a thread of the library's choice.
#ifdef __GNUC__
__attribute__((__unused__))
#endif
OS_SWIFT_UNAVAILABLE("dispatch objects are counted by ARC in Swift") static __inline__ void
os_release(void *object) {
  _os_object_release((struct _os_object_s *)object);
}

__END_DECLS

#endif
