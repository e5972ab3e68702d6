// What does it cost to enter and leave a queue, alone and beside another thread?
#include "rows.h"

#include <dispatch/dispatch.h>

// MARK: One thread

typedef void enter_function(dispatch_queue_t queue, struct counter *entries, long count);

static void enter_f(dispatch_queue_t queue, struct counter *entries, long count) {
  for (long index = 0; index < count; index++) dispatch_sync_f(queue, entries, add_one);
}

static void enter_block(dispatch_queue_t queue, struct counter *entries, long count) {
  for (long index = 0; index < count; index++) dispatch_sync(queue, ^{ entries->value++; });
}

static void enter_barrier(dispatch_queue_t queue, struct counter *entries, long count) {
  for (long index = 0; index < count; index++) dispatch_barrier_sync_f(queue, entries, add_one);
}

static struct measurement measure(long count, dispatch_queue_attr_t kind, enter_function enter) {
  dispatch_queue_t queue = dispatch_queue_create("queue", kind);
  struct counter entries;
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    entries.value = 0;
    long start = bench_now();
    enter(queue, &entries, count);
    bench_record(&passes, bench_now() - start);
    verify(entries.value, count, "entries");
  }
  dispatch_release(queue);
  return per_operation(&passes, count, count);
}

static struct measurement sync_f(long count) { return measure(count, DISPATCH_QUEUE_SERIAL, enter_f); }
static struct measurement sync_block(long count) { return measure(count, DISPATCH_QUEUE_SERIAL, enter_block); }
static struct measurement concurrent_sync_f(long count) { return measure(count, DISPATCH_QUEUE_CONCURRENT, enter_f); }
static struct measurement barrier_sync_f(long count) { return measure(count, DISPATCH_QUEUE_CONCURRENT, enter_barrier); }

// MARK: Two threads

struct shared {
  dispatch_queue_t queue;
  struct counter entries;
  long share, previous, handovers;
};

struct visit {
  struct shared *shared;
  int thread;
};

static void enter(void *context) {
  struct visit *visit = context;
  visit->shared->entries.value++;
  visit->shared->handovers += visit->shared->previous != visit->thread;
  visit->shared->previous = visit->thread;
}

static void enter_share(void *context, int thread) {
  struct shared *shared = context;
  struct visit visit = {shared, thread};
  for (long index = 0; index < shared->share; index++) dispatch_sync_f(shared->queue, &visit, enter);
}

static long pass_two_threads(struct shared *shared, long count) {
  // On a busy machine one thread may finish before the other gets its core; such a pass says nothing.
  for (int attempt = 0; attempt < 20; attempt++) {
    shared->entries.value = shared->handovers = 0;
    shared->previous = -1;
    long time = bench_time_two_threads(enter_share, shared);
    verify(shared->entries.value, count, "entries that excluded each other");
    // Contending threads hand over at least at every tenth entry; one after the other, twice in all. A single core
    // cannot do better.
    if (shared->handovers > count / 100 || bench_core_count() == 1) return time;
  }
  verify(0, 1, "passes in which the threads met");
  return 0;
}

static struct measurement sync_f_two_threads(long count) {
  struct shared shared = {.queue = dispatch_queue_create("serial", NULL), .share = count / 2};
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) bench_record(&passes, pass_two_threads(&shared, count));
  return per_operation(&passes, count, count);
}

const struct row sync_rows[] = {
    {"sync-f", sync_f, 5000000, "enter and leave an idle serial queue", NULL},
    {"sync-block", sync_block, 5000000, "the same with a block", NULL},
    {"sync-f-two-threads", sync_f_two_threads, 200000, "two threads on two cores enter one serial queue", NULL},
    {"concurrent-sync-f", concurrent_sync_f, 5000000, "enter the shared side of a concurrent queue", NULL},
    {"barrier-sync-f", barrier_sync_f, 2000000, "enter an idle concurrent queue as a barrier", NULL},
    {0},
};
