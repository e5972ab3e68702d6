// What all rows share: clock, passes, checks, threads.
#define _GNU_SOURCE
#include "bench.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

void verify(long observed, long expected, const char *what) {
  if (observed == expected) return;
  fprintf(stderr, "benchmark failed: %s: expected %ld, observed %ld\n", what, expected, observed);
  exit(70);
}

struct measurement quickest_pass(long count, pass_function pass, void *context) {
  pass(context, count);
  long quickest = LONG_MAX;
  for (int index = 0; index < 3; index++) {
    long time = pass(context, count);
    if (time < quickest) quickest = time;
  }
  return (struct measurement){(double)quickest / (double)count, count, count};
}

struct race {
  void (*body)(void *context, int thread);
  void *context;
  atomic_int arrived;
  long starts[2], ends[2];
};

struct runner {
  struct race *race;
  int index;
};

static void *run(void *argument) {
  struct runner *runner = argument;
  struct race *race = runner->race;
  verify(bench_pin_to_core(runner->index), 0, "a thread is pinned to its core");
  atomic_fetch_add(&race->arrived, 1);
  // Spinning: a sleeping thread would start late.
  while (atomic_load(&race->arrived) < 2) continue;
  race->starts[runner->index] = now();
  race->body(race->context, runner->index);
  race->ends[runner->index] = now();
  return NULL;
}

long time_two_threads(void (*body)(void *context, int thread), void *context) {
  struct race race = {.body = body, .context = context};
  struct runner runners[2];
  pthread_t threads[2];
  for (int index = 0; index < 2; index++) {
    runners[index] = (struct runner){&race, index};
    verify(pthread_create(&threads[index], NULL, run, &runners[index]), 0, "pthread_create");
  }
  for (int index = 0; index < 2; index++) pthread_join(threads[index], NULL);
  long start = race.starts[0] < race.starts[1] ? race.starts[0] : race.starts[1];
  long end = race.ends[0] > race.ends[1] ? race.ends[0] : race.ends[1];
  return end - start;
}

struct slots make_slots(long count) {
  struct slots slots = {calloc((size_t)count, 1), count};
  verify(slots.bytes != NULL, 1, "memory for the slots");
  return slots;
}

long take_marked_once(struct slots slots) {
  long once = 0;
  for (long index = 0; index < slots.count; index++) {
    once += slots.bytes[index] == 1;
    slots.bytes[index] = 0;
  }
  return once;
}
