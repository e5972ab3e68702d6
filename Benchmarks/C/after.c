// What does dispatch_after_f cost when many wait at once, until all have run?
#include "bench.h"

struct work {
  dispatch_queue_t queue;
  dispatch_semaphore_t done;
  struct counter fired;
  long expected;
};

static void fire(void *context) {
  struct work *work = context;
  if (++work->fired.value == work->expected) dispatch_semaphore_signal(work->done);
}

static long pass(void *context, long count) {
  struct work *work = context;
  work->expected = count;
  work->fired.value = 0;
  long start = now();
  for (long index = 0; index < count; index++)
    dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, NSEC_PER_MSEC), work->queue, work, fire);
  dispatch_semaphore_wait(work->done, DISPATCH_TIME_FOREVER);
  long time = now() - start;
  verify(work->fired.value, count, "tasks that ran");
  verify(time >= (long)NSEC_PER_MSEC, 1, "the last one did not run early");
  return time;
}

struct measurement after_f(long count) {
  struct work work = {
      .queue = dispatch_queue_create("serial", NULL), .done = dispatch_semaphore_create(0)};
  return quickest_pass(count, pass, &work);
}
