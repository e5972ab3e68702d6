// Concourse: Grand Central Dispatch for Linux. This is the one header to include; it brings all public
// declarations. What every function has in common, unless it says otherwise:
//
// - It may be called from any thread, and from within an item.
// - NULL for a queue, an object, a function or a block is a client bug and ends the process.
// - "Traps" means that the process ends at once, with one line on standard error that says why.
// - Times and intervals are nanoseconds.
// - A function whose name ends in `_f` does what its namesake does, with `work(context)` in place of a block.
//   Without blocks (gcc, or clang without -fblocks) only these are declared.
// - What `create` or `copy` returns is the caller's to release.

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

// With Clang modules, `off_t` must come from the module in which the C library's map puts it.
#if __has_feature(modules) && !defined(__arm__)
#include <stdio.h>
#endif

#define DISPATCH_API_VERSION 20180109

// Tells these headers, and with them the additions, from others.
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
