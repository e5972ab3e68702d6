// How long until a task has run and told so, again and again?
#include "bench.h"

struct work {
  dispatch_queue_t queue;
  dispatch_semaphore_t done;
  struct counter runs;
};

static void task(void *context) {
  struct work *work = context;
  work->runs.value++;
  dispatch_semaphore_signal(work->done);
}

static long pass(void *context, long count) {
  struct work *work = context;
  work->runs.value = 0;
  long start = now();
  for (long index = 0; index < count; index++) {
    dispatch_async_f(work->queue, work, task);
    dispatch_semaphore_wait(work->done, DISPATCH_TIME_FOREVER);
  }
  long time = now() - start;
  verify(work->runs.value, count, "tasks that ran");
  return time;
}

struct measurement round_trip(long count) {
  struct work work = {
      .queue = dispatch_queue_create("serial", NULL), .done = dispatch_semaphore_create(0)};
  return quickest_pass(count, pass, &work);
}
