// What does a task on a global queue cost, until all have run?
#include "bench.h"

#include <stdatomic.h>

struct work {
  dispatch_semaphore_t done;
  _Alignas(128) atomic_long remaining;
};

static void task(void *context) {
  struct work *work = context;
  if (atomic_fetch_sub(&work->remaining, 1) == 1) dispatch_semaphore_signal(work->done);
}

static long pass(void *context, long count) {
  struct work *work = context;
  dispatch_queue_t queue = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
  work->remaining = count;
  long start = now();
  for (long index = 0; index < count; index++) dispatch_async_f(queue, work, task);
  dispatch_semaphore_wait(work->done, DISPATCH_TIME_FOREVER);
  long time = now() - start;
  verify(work->remaining, 0, "tasks that did not run");
  return time;
}

struct measurement global_async_f(long count) {
  struct work work = {.done = dispatch_semaphore_create(0)};
  return quickest_pass(count, pass, &work);
}
