// What does a hop cost: each task asyncs the next one onto the other of two serial queues?
#include "bench.h"

struct court {
  dispatch_queue_t queues[2];
  dispatch_semaphore_t done;
  struct counter hops;
  long remaining;
};

static void arrive(struct court *court) {
  court->hops.value++;
  court->remaining--;
}

static void task(void *context) {
  struct court *court = context;
  arrive(court);
  if (court->remaining == 0) dispatch_semaphore_signal(court->done);
  else dispatch_async_f(court->queues[court->remaining & 1], court, task);
}

static void hop(struct court *court) {
  dispatch_async(court->queues[court->remaining & 1], ^{
    arrive(court);
    if (court->remaining == 0) dispatch_semaphore_signal(court->done);
    else hop(court);
  });
}

static long finish(struct court *court, long start, long count) {
  dispatch_semaphore_wait(court->done, DISPATCH_TIME_FOREVER);
  long time = now() - start;
  verify(court->hops.value, count, "hops, one after the other");
  court->hops.value = 0;
  return time;
}

static long pass_f(void *context, long count) {
  struct court *court = context;
  court->remaining = count;
  long start = now();
  dispatch_async_f(court->queues[count & 1], court, task);
  return finish(court, start, count);
}

static long pass_block(void *context, long count) {
  struct court *court = context;
  court->remaining = count;
  long start = now();
  hop(court);
  return finish(court, start, count);
}

static struct measurement measure(long count, pass_function pass) {
  struct court court = {
      .queues = {dispatch_queue_create("even", NULL), dispatch_queue_create("odd", NULL)},
      .done = dispatch_semaphore_create(0)};
  return quickest_pass(count, pass, &court);
}

struct measurement hop_f(long count) { return measure(count, pass_f); }
struct measurement hop_block(long count) { return measure(count, pass_block); }
