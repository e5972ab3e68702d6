// How long from a write to a pipe until a read source's handler has read it and told so?
#define _GNU_SOURCE
#include "bench.h"

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

static long pass(void *context, long count) {
  struct court *court = context;
  court->bytes.value = 0;
  long start = now();
  for (long trip = 0; trip < count; trip++) {
    verify(write(court->writing, "x", 1), 1, "bytes written");
    dispatch_semaphore_wait(court->answer, DISPATCH_TIME_FOREVER);
  }
  long time = now() - start;
  verify(court->bytes.value, count, "bytes read");
  return time;
}

struct measurement pipe_source(long count) {
  int ends[2];
  verify(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0, "pipe2");
  struct court court = {
      .reading = ends[0], .writing = ends[1], .answer = dispatch_semaphore_create(0)};
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  dispatch_source_t source =
      dispatch_source_create(DISPATCH_SOURCE_TYPE_READ, (uintptr_t)court.reading, 0, queue);
  dispatch_set_context(source, &court);
  dispatch_source_set_event_handler_f(source, read_one);
  dispatch_activate(source);
  return quickest_pass(count, pass, &court);
}
