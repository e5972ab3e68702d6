// What does a task cost from its submission until it has run?
#include "rows.h"

#include <Block.h>
#include <dispatch/dispatch.h>
#include <stdatomic.h>

// MARK: One thread submits many tasks onto a serial queue

typedef void submit_function(dispatch_queue_t queue, struct counter *runs, long count);

static void submit_f(dispatch_queue_t queue, struct counter *runs, long count) {
  for (long index = 0; index < count; index++) dispatch_async_f(queue, runs, add_one);
}

static void submit_block(dispatch_queue_t queue, struct counter *runs, long count) {
  for (long index = 0; index < count; index++) dispatch_async(queue, ^{ runs->value++; });
}

static void submit_block_object(dispatch_queue_t queue, struct counter *runs, long count) {
  for (long index = 0; index < count; index++) {
    dispatch_block_t object = dispatch_block_create(0, ^{ runs->value++; });
    dispatch_async(queue, object);
    Block_release(object);
  }
}

static struct measurement measure_async(long count, submit_function submit) {
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  struct counter runs;
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    runs.value = 0;
    long start = bench_now();
    submit(queue, &runs, count);
    dispatch_sync_f(queue, &runs, add_one);
    bench_record(&passes, bench_now() - start);
    verify(runs.value, count + 1, "tasks that ran");
  }
  dispatch_release(queue);
  return per_operation(&passes, count, count);
}

static struct measurement async_f(long count) { return measure_async(count, submit_f); }
static struct measurement async_block(long count) { return measure_async(count, submit_block); }
static struct measurement async_block_object(long count) { return measure_async(count, submit_block_object); }

static void compute_ten_microseconds(void *counter) {
  long end = bench_now() + 10000;
  while (bench_now() < end) {}
  add_one(counter);
}

static void submit_ten_microseconds(dispatch_queue_t queue, struct counter *runs, long count) {
  for (long index = 0; index < count; index++) dispatch_async_f(queue, runs, compute_ten_microseconds);
}

static struct measurement ten_microsecond_items_f(long count) { return measure_async(count, submit_ten_microseconds); }

static struct measurement barrier_async_f(long count) {
  dispatch_queue_t queue = dispatch_queue_create("concurrent", DISPATCH_QUEUE_CONCURRENT);
  struct counter runs;
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    runs.value = 0;
    long start = bench_now();
    for (long index = 0; index < count; index++) dispatch_barrier_async_f(queue, &runs, add_one);
    dispatch_barrier_sync_f(queue, &runs, add_one);
    bench_record(&passes, bench_now() - start);
    verify(runs.value, count + 1, "barriers that excluded each other");
  }
  return per_operation(&passes, count, count);
}

// MARK: Onto a global queue

struct fan_out {
  dispatch_semaphore_t done;
  _Alignas(128) atomic_long remaining;
};

static void finish_one(void *context) {
  struct fan_out *work = context;
  if (atomic_fetch_sub(&work->remaining, 1) == 1) dispatch_semaphore_signal(work->done);
}

static struct measurement global_async_f(long count) {
  dispatch_queue_t queue = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
  struct fan_out work = {.done = dispatch_semaphore_create(0)};
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    work.remaining = count;
    long start = bench_now();
    for (long index = 0; index < count; index++) dispatch_async_f(queue, &work, finish_one);
    dispatch_semaphore_wait(work.done, DISPATCH_TIME_FOREVER);
    bench_record(&passes, bench_now() - start);
    verify(work.remaining, 0, "tasks that did not run");
  }
  return per_operation(&passes, count, count);
}

// MARK: Round trips

struct trip {
  dispatch_semaphore_t done;
  struct counter runs;
};

static void answer(void *context) {
  struct trip *trip = context;
  trip->runs.value++;
  dispatch_semaphore_signal(trip->done);
}

static struct measurement round_trip(long count) {
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  struct trip trip = {.done = dispatch_semaphore_create(0)};
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    trip.runs.value = 0;
    long start = bench_now();
    for (long index = 0; index < count; index++) {
      dispatch_async_f(queue, &trip, answer);
      dispatch_semaphore_wait(trip.done, DISPATCH_TIME_FOREVER);
    }
    bench_record(&passes, bench_now() - start);
    verify(trip.runs.value, count, "tasks that ran");
  }
  return per_operation(&passes, count, count);
}

// MARK: Hops: each task submits the next one onto the other of two serial queues

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

static void start_f(struct court *court) { dispatch_async_f(court->queues[court->remaining & 1], court, task); }

static void start_block(struct court *court) {
  dispatch_async(court->queues[court->remaining & 1], ^{
    arrive(court);
    if (court->remaining == 0) dispatch_semaphore_signal(court->done);
    else start_block(court);
  });
}

static struct measurement measure_hops(long count, void (*begin)(struct court *court)) {
  struct court court = {
      .queues = {dispatch_queue_create("even", NULL), dispatch_queue_create("odd", NULL)},
      .done = dispatch_semaphore_create(0)};
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    court.remaining = count;
    court.hops.value = 0;
    long start = bench_now();
    begin(&court);
    dispatch_semaphore_wait(court.done, DISPATCH_TIME_FOREVER);
    bench_record(&passes, bench_now() - start);
    verify(court.hops.value, count, "hops, one after the other");
  }
  return per_operation(&passes, count, count);
}

static struct measurement hop_f(long count) { return measure_hops(count, start_f); }
static struct measurement hop_block(long count) { return measure_hops(count, start_block); }

const struct row submit_rows[] = {
    {"async-f", async_f, 1000000, "one thread asyncs onto a serial queue, until all have run", NULL},
    {"ten-microsecond-items-f", ten_microsecond_items_f, 20000, "the same with tasks of 10 µs", NULL},
    {"async-block", async_block, 1000000, "the same with blocks, which are copied", NULL},
    {"async-block-object", async_block_object, 200000, "make a block object, async it, release it", NULL},
    {"global-async-f", global_async_f, 500000, "async onto a global queue, until all have run", NULL},
    {"barrier-async-f", barrier_async_f, 500000, "barriers asynced onto a concurrent queue", NULL},
    {"round-trip", round_trip, 20000, "async_f onto a serial queue, its task signals, wait", NULL},
    {"hop-f", hop_f, 300000, "each task asyncs the next onto the other of two serial queues", NULL},
    {"hop-block", hop_block, 300000, "the same with blocks", NULL},
    {0},
};
