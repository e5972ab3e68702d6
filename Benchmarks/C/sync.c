// What does it cost to enter and leave a queue that nobody else uses?
#include "bench.h"

struct work {
  dispatch_queue_t queue;
  struct counter entries;
};

static long finish(struct work *work, long start, long count) {
  long time = now() - start;
  verify(work->entries.value, count, "entries");
  work->entries.value = 0;
  return time;
}

static long pass_f(void *context, long count) {
  struct work *work = context;
  long start = now();
  for (long index = 0; index < count; index++) dispatch_sync_f(work->queue, &work->entries, add_one);
  return finish(work, start, count);
}

static long pass_block(void *context, long count) {
  struct work *work = context;
  long start = now();
  for (long index = 0; index < count; index++) dispatch_sync(work->queue, ^{ work->entries.value++; });
  return finish(work, start, count);
}

static long pass_barrier(void *context, long count) {
  struct work *work = context;
  long start = now();
  for (long index = 0; index < count; index++)
    dispatch_barrier_sync_f(work->queue, &work->entries, add_one);
  return finish(work, start, count);
}

static struct measurement measure(long count, dispatch_queue_attr_t kind, pass_function pass) {
  struct work work = {.queue = dispatch_queue_create("queue", kind)};
  struct measurement result = quickest_pass(count, pass, &work);
  dispatch_release(work.queue);
  return result;
}

struct measurement sync_f(long count) { return measure(count, DISPATCH_QUEUE_SERIAL, pass_f); }
struct measurement sync_block(long count) { return measure(count, DISPATCH_QUEUE_SERIAL, pass_block); }
struct measurement concurrent_sync_f(long count) {
  return measure(count, DISPATCH_QUEUE_CONCURRENT, pass_f);
}
struct measurement barrier_sync_f(long count) {
  return measure(count, DISPATCH_QUEUE_CONCURRENT, pass_barrier);
}
