// What does a barrier on a concurrent queue cost when one thread submits many, until all have run?
#include "bench.h"

struct work {
  dispatch_queue_t queue;
  struct counter runs;
};

static long pass(void *context, long count) {
  struct work *work = context;
  long start = now();
  for (long index = 0; index < count; index++)
    dispatch_barrier_async_f(work->queue, &work->runs, add_one);
  dispatch_barrier_sync_f(work->queue, &work->runs, add_one);
  long time = now() - start;
  verify(work->runs.value, count + 1, "barriers that excluded each other");
  work->runs.value = 0;
  return time;
}

struct measurement barrier_async_f(long count) {
  struct work work = {.queue = dispatch_queue_create("concurrent", DISPATCH_QUEUE_CONCURRENT)};
  return quickest_pass(count, pass, &work);
}
