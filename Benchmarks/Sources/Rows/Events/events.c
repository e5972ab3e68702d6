// What do event sources cost: a byte through a pipe, and a number merged into a data-add source?
#define _GNU_SOURCE
#include "rows.h"

#include <dispatch/dispatch.h>
#include <fcntl.h>
#include <unistd.h>

struct court {
  int reading, writing;
  dispatch_semaphore_t answer;
  struct counter bytes;
};

static void read_one(void *context) {
  struct court *court = context;
  char byte;
  if (read(court->reading, &byte, 1) != 1) return;
  court->bytes.value++;
  dispatch_semaphore_signal(court->answer);
}

static struct measurement pipe_source(long count) {
  int ends[2];
  verify(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0, "pipe2");
  struct court court = {.reading = ends[0], .writing = ends[1], .answer = dispatch_semaphore_create(0)};
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_READ, (uintptr_t)court.reading, 0, queue);
  dispatch_set_context(source, &court);
  dispatch_source_set_event_handler_f(source, read_one);
  dispatch_activate(source);
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    court.bytes.value = 0;
    long start = bench_now();
    for (long trip = 0; trip < count; trip++) {
      verify(write(court.writing, "x", 1), 1, "bytes written");
      dispatch_semaphore_wait(court.answer, DISPATCH_TIME_FOREVER);
    }
    bench_record(&passes, bench_now() - start);
    verify(court.bytes.value, count, "bytes read");
  }
  return per_operation(&passes, count, count);
}

struct merges {
  dispatch_source_t source;
  dispatch_semaphore_t done;
  struct counter sum;
  long expected;
};

static void add_data(void *context) {
  struct merges *merges = context;
  merges->sum.value += (long)dispatch_source_get_data(merges->source);
  if (merges->sum.value == merges->expected) dispatch_semaphore_signal(merges->done);
}

static struct measurement data_add_source(long count) {
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  struct merges merges = {
      .source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue),
      .done = dispatch_semaphore_create(0),
      .expected = count};
  dispatch_set_context(merges.source, &merges);
  dispatch_source_set_event_handler_f(merges.source, add_data);
  dispatch_activate(merges.source);
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    merges.sum.value = 0;
    long start = bench_now();
    for (long index = 0; index < count; index++) dispatch_source_merge_data(merges.source, 1);
    dispatch_semaphore_wait(merges.done, DISPATCH_TIME_FOREVER);
    bench_record(&passes, bench_now() - start);
    verify(merges.sum.value, count, "the sum of all that was merged");
  }
  return per_operation(&passes, count, count);
}

const struct row events_rows[] = {
    {"pipe-source", pipe_source, 10000, "write to a pipe, a read source's handler reads and signals", NULL},
    {"data-add-source", data_add_source, 1000000, "merge into a data-add source, until all is handled", NULL},
    {0},
};
