#include "concourse_abi.h"

#include <stddef.h>

#define CONCOURSE_DEFINE(name, size, kind) char name[size] = {[0 ... size - 1] = kind};
CONCOURSE_OBJECTS(CONCOURSE_DEFINE)
#undef CONCOURSE_DEFINE

__thread struct concourse_crossing concourse_crossing;

#define EXPORTED __attribute__((visibility("default")))

// Hooks for runtimes with autorelease pools. The library never calls them; programs may read them.
extern void *(*_dispatch_begin_NSAutoReleasePool)(void) EXPORTED;
extern void (*_dispatch_end_NSAutoReleasePool)(void *) EXPORTED;
void *(*_dispatch_begin_NSAutoReleasePool)(void);
void (*_dispatch_end_NSAutoReleasePool)(void *);

// The layout of a queue: for each of eight fields its offset and size, behind a version. Version 0 means that debuggers
// have nothing to read. Clang's thread sanitizer reads two fields, whatever the version.
extern const uint16_t dispatch_queue_offsets[17] EXPORTED;
const uint16_t dispatch_queue_offsets[17] = {
    [7] = CONCOURSE_WIDTH_OFFSET, [8] = 2, [13] = CONCOURSE_TARGET_OFFSET, [14] = 8};
