// What do a queue's life, a reference to it and a value kept with it cost?
#include "bench.h"

#include <string.h>

static long pass_life(void *context, long count) {
  (void)context;
  long start = now();
  for (long index = 0; index < count; index++)
    dispatch_release(dispatch_queue_create("a queue of the benchmark", NULL));
  return now() - start;
}

struct measurement queue_life(long count) {
  dispatch_queue_t queue = dispatch_queue_create("a queue of the benchmark", NULL);
  struct counter entries = {0};
  dispatch_sync_f(queue, &entries, add_one);
  verify(entries.value, 1, "a new queue works");
  verify(strcmp(dispatch_queue_get_label(queue), "a queue of the benchmark"), 0, "its label");
  dispatch_release(queue);
  return quickest_pass(count, pass_life, NULL);
}

static void note_end(void *done) { dispatch_semaphore_signal(done); }

static long pass_references(void *queue, long count) {
  long start = now();
  for (long index = 0; index < count; index++) {
    dispatch_retain((dispatch_queue_t)queue);
    dispatch_release((dispatch_queue_t)queue);
  }
  return now() - start;
}

struct measurement retain_release(long count) {
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  dispatch_set_context(queue, done);
  dispatch_set_finalizer_f(queue, note_end);
  struct measurement result = quickest_pass(count, pass_references, queue);
  verify(dispatch_semaphore_wait(done, DISPATCH_TIME_NOW) != 0, 1, "the queue lives");
  dispatch_release(queue);
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  return result;
}

struct search {
  dispatch_queue_t queue;
  long count, time, sum;
};

static const char key;

static void look_up(void *context) {
  struct search *search = context;
  search->sum = 0;
  long start = now();
  for (long index = 0; index < search->count; index++)
    search->sum += *(const long *)dispatch_get_specific(&key);
  search->time = now() - start;
}

static long pass_specific(void *context, long count) {
  struct search *search = context;
  search->count = count;
  dispatch_sync_f(search->queue, search, look_up);
  verify(search->sum, 3 * count, "values found");
  return search->time;
}

struct measurement get_specific(long count) {
  static long value = 3;
  struct search search = {.queue = dispatch_queue_create("serial", NULL)};
  dispatch_queue_set_specific(search.queue, &key, &value, NULL);
  return quickest_pass(count, pass_specific, &search);
}
