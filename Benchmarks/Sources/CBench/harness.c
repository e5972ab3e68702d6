// The harness of the programs in C and C++: their command line, checks, and two threads that start together.
#define _GNU_SOURCE
#include "rows.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_row(const struct row *row) {
  printf("%s\t%s\t%s\n", row->name, row->unit ? row->unit : "ns", row->question);
}

static void measure(const struct row *row, long divisor) {
  struct measurement result = row->measure(row->count / divisor);
  printf("%s %f %ld %ld\n", row->name, result.value, result.operations, result.check);
}

int run_rows(int count, char **words, const struct row *const *families) {
  const char *name = NULL;
  bool list = false, quick = false;
  for (int index = 1; index < count; index++) {
    if (strcmp(words[index], "--list") == 0) list = true;
    else if (strcmp(words[index], "--quick") == 0) quick = true;
    else if (strcmp(words[index], "--row") == 0 && index + 1 < count) name = words[++index];
    else if (strcmp(words[index], "--library") == 0) return bench_print_dispatch_libraries();
  }
  for (; *families; families++) {
    for (const struct row *row = *families; row->name; row++) {
      if (list) {
        print_row(row);
      } else if (name && strcmp(row->name, name) == 0) {
        measure(row, quick ? 10 : 1);
        return 0;
      }
    }
  }
  if (list) return 0;
  fprintf(stderr, "usage: --list | --library | --row NAME [--quick]\n");
  return 64;
}

void verify(long observed, long expected, const char *what) {
  if (observed == expected) return;
  fprintf(stderr, "benchmark failed: %s: expected %ld, observed %ld\n", what, expected, observed);
  exit(70);
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

// MARK: Threads that start together

struct race {
  void (*body)(void *context, int thread);
  void *context;
  int threads;
  bool pinned;
  atomic_int arrived;
};

struct runner {
  struct race *race;
  pthread_t thread;
  int index;
  long start, end;
};

// Keeps the calling thread on the index-th core that it may use, starting over after the last one.
static int pin_to_core(int index) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
  int wanted = index % CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; core++) {
    if (!CPU_ISSET(core, &allowed) || wanted-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(0, sizeof one, &one);
  }
  return -1;
}

static void *run(void *argument) {
  struct runner *runner = argument;
  struct race *race = runner->race;
  if (race->pinned) verify(pin_to_core(runner->index), 0, "a thread is pinned to its core");
  atomic_fetch_add(&race->arrived, 1);
  // Spinning: a sleeping thread would start late.
  while (atomic_load(&race->arrived) < race->threads) continue;
  runner->start = bench_now();
  race->body(race->context, runner->index);
  runner->end = bench_now();
  return NULL;
}

long bench_time_threads(int threads, bool pinned, void (*body)(void *context, int thread), void *context) {
  struct race race = {.body = body, .context = context, .threads = threads, .pinned = pinned};
  struct runner *runners = calloc((size_t)threads, sizeof *runners);
  verify(runners != NULL, 1, "memory for the threads");
  for (int index = 0; index < threads; index++) {
    runners[index] = (struct runner){.race = &race, .index = index};
    verify(pthread_create(&runners[index].thread, NULL, run, &runners[index]), 0, "pthread_create");
  }
  long start = 0, end = 0;
  for (int index = 0; index < threads; index++) {
    pthread_join(runners[index].thread, NULL);
    if (index == 0 || runners[index].start < start) start = runners[index].start;
    if (runners[index].end > end) end = runners[index].end;
  }
  free(runners);
  return end - start;
}

long bench_time_two_threads(void (*body)(void *context, int thread), void *context) {
  return bench_time_threads(2, true, body, context);
}
