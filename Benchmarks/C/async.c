// What does a task on a serial queue cost when one thread submits many, until all have run?
#include "bench.h"

#include <Block.h>

struct work {
  dispatch_queue_t queue;
  struct counter runs;
};

static long finish(struct work *work, long start, long count) {
  dispatch_sync_f(work->queue, &work->runs, add_one);
  long time = now() - start;
  verify(work->runs.value, count + 1, "tasks that ran");
  work->runs.value = 0;
  return time;
}

static long pass_f(void *context, long count) {
  struct work *work = context;
  long start = now();
  for (long index = 0; index < count; index++) dispatch_async_f(work->queue, &work->runs, add_one);
  return finish(work, start, count);
}

static long pass_block(void *context, long count) {
  struct work *work = context;
  long start = now();
  for (long index = 0; index < count; index++) dispatch_async(work->queue, ^{ work->runs.value++; });
  return finish(work, start, count);
}

static long pass_object(void *context, long count) {
  struct work *work = context;
  long start = now();
  for (long index = 0; index < count; index++) {
    dispatch_block_t object = dispatch_block_create(0, ^{ work->runs.value++; });
    dispatch_async(work->queue, object);
    Block_release(object);
  }
  return finish(work, start, count);
}

static struct measurement measure(long count, pass_function pass) {
  struct work work = {.queue = dispatch_queue_create("serial", NULL)};
  struct measurement result = quickest_pass(count, pass, &work);
  dispatch_release(work.queue);
  return result;
}

struct measurement async_f(long count) { return measure(count, pass_f); }
struct measurement async_block(long count) { return measure(count, pass_block); }
struct measurement async_block_object(long count) { return measure(count, pass_object); }
