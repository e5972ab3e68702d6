// Hooks at which debuggers watch queues. Declared so that sources that name them compile. The library neither defines
// nor calls them.

#ifndef __DISPATCH_INTROSPECTION__
#define __DISPATCH_INTROSPECTION__

#include <dispatch/dispatch.h>

DISPATCH_HEADER_BEGIN
DISPATCH_ASSUME_NONNULL_BEGIN

__BEGIN_DECLS

DISPATCH_EXPORT void
dispatch_introspection_hook_queue_create(dispatch_queue_t queue);

DISPATCH_EXPORT void
dispatch_introspection_hook_queue_destroy(dispatch_queue_t queue);

DISPATCH_EXPORT void
dispatch_introspection_hook_queue_item_enqueue(dispatch_queue_t queue, dispatch_object_t item);

DISPATCH_EXPORT void
dispatch_introspection_hook_queue_item_dequeue(dispatch_queue_t queue, dispatch_object_t item);

DISPATCH_EXPORT void
dispatch_introspection_hook_queue_item_complete(dispatch_object_t item);

DISPATCH_EXPORT void
dispatch_introspection_hook_queue_callout_begin(dispatch_queue_t queue, void *_Nullable context,
                                                dispatch_function_t function);

DISPATCH_EXPORT void
dispatch_introspection_hook_queue_callout_end(dispatch_queue_t queue, void *_Nullable context,
                                              dispatch_function_t function);

__END_DECLS

DISPATCH_ASSUME_NONNULL_END
DISPATCH_HEADER_END

#endif
