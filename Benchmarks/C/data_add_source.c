// What does it cost to merge a number into a data-add source, until all numbers were handled?
#include "bench.h"

struct work {
  dispatch_source_t source;
  dispatch_semaphore_t done;
  struct counter sum;
  long expected;
};

static void handle(void *context) {
  struct work *work = context;
  work->sum.value += (long)dispatch_source_get_data(work->source);
  if (work->sum.value == work->expected) dispatch_semaphore_signal(work->done);
}

static long pass(void *context, long count) {
  struct work *work = context;
  work->expected = count;
  work->sum.value = 0;
  long start = now();
  for (long index = 0; index < count; index++) dispatch_source_merge_data(work->source, 1);
  dispatch_semaphore_wait(work->done, DISPATCH_TIME_FOREVER);
  long time = now() - start;
  verify(work->sum.value, count, "the sum of all that was merged");
  return time;
}

struct measurement data_add_source(long count) {
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  struct work work = {
      .source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue),
      .done = dispatch_semaphore_create(0)};
  dispatch_set_context(work.source, &work);
  dispatch_source_set_event_handler_f(work.source, handle);
  dispatch_activate(work.source);
  return quickest_pass(count, pass, &work);
}
