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

// The queue layout for debuggers. Version 0 means that there is no layout to read.
extern const char dispatch_queue_offsets[0x22] EXPORTED;
const char dispatch_queue_offsets[0x22];
