// Concourse: Grand Central Dispatch for Linux. Include this header; it includes all public declarations.
//
// The following holds for every function unless its comment says otherwise:
//
// - It may be called from any thread, and from an item.
// - NULL for a queue, an object, a function or a block is a client bug and ends the process.
// - "Traps" means that the process ends at once, after one line on standard error with the reason.
// - Times and intervals are in nanoseconds.
// - A function with the suffix `_f` calls `work(context)` instead of a block. Without blocks (gcc, or clang without
//   -fblocks) only these functions are declared.
// - The caller releases what a `create` or `copy` function returns.

#ifndef __DISPATCH_PUBLIC__
#define __DISPATCH_PUBLIC__

#include <os/generic_unix_base.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

// With Clang modules, `off_t` must come from the module to which the C library's module map assigns it.
#if __has_feature(modules) && !defined(__arm__)
#include <stdio.h>
#endif

#define DISPATCH_API_VERSION 20180109

// Identifies these headers and their additions.
#define CONCOURSE_DISPATCH 1

#ifndef __DISPATCH_INDIRECT__
#define __DISPATCH_INDIRECT__
#endif

#include <os/object.h>

#include <dispatch/base.h>
#include <dispatch/time.h>
#include <dispatch/object.h>
#include <dispatch/queue.h>
#include <dispatch/block.h>
#include <dispatch/source.h>
#include <dispatch/group.h>
#include <dispatch/semaphore.h>
#include <dispatch/once.h>
#include <dispatch/data.h>
#include <dispatch/io.h>
#include <dispatch/workloop.h>

#undef __DISPATCH_INDIRECT__

#endif
