#ifndef BENCH_H
#define BENCH_H

#include "cbench.h"

#include <dispatch/dispatch.h>
#include <stddef.h>

// What a row found out: the value in the row's unit, how many operations it stands for, and a number
// that the work itself computed.
struct measurement {
  double value;
  long operations, check;
};

// Does the work once and returns the nanoseconds of the part that counts, so that it can prepare and
// verify outside of it.
typedef long (*pass_function)(void *context, long count);

// Nanoseconds per operation: the quickest of three passes after a warm-up, which starts the library's
// threads and fills the allocator's caches.
struct measurement quickest_pass(long count, pass_function pass, void *context);

// The monotonic clock in nanoseconds.
long now(void);

// Ends the process, loudly, unless both are equal: a wrong result must never become a number.
void verify(long observed, long expected, const char *what);

// The nanoseconds from the first start to the last end of two threads of our own, each on a core of its
// own: left alone, the kernel may run them in turn on one, and nothing contends.
long time_two_threads(void (*body)(void *context, int thread), void *context);

// A number that work items add to, on cache lines of its own. It is shared without atomics on purpose:
// rows add to it only under the exclusion that they measure, so a library that breaks it shows in the sum.
struct counter {
  _Alignas(128) long value;
  char rest[120];
};

static inline void add_one(void *counter) { ((struct counter *)counter)->value++; }

// One byte for each item: for items that run at the same time. Each touches only its own.
struct slots {
  char *bytes;
  long count;
};

struct slots make_slots(long count);
static inline void mark_slot(void *byte) { ++*(char *)byte; }
// How many were marked exactly once since the last call; clears them.
long take_marked_once(struct slots slots);

// The rows: one function for each form of a file's question.
typedef struct measurement row_function(long count);
row_function async_f, async_block, async_block_object;
row_function global_async_f, round_trip;
row_function sync_f, sync_block, sync_f_two_threads, concurrent_sync_f;
row_function barrier_async_f, barrier_sync_f;
row_function apply_f, apply_block;
row_function group_async_f, group_async_block, group_enter_leave, group_notify_f;
row_function semaphore_signal_wait, semaphore_ping_pong;
row_function hop_f, hop_block;
row_function after_f, once_f, queue_life, retain_release, get_specific;
row_function pipe_source, data_add_source, timer_source, timer_source_life;
row_function data_concat, data_apply, data_map;

#endif
