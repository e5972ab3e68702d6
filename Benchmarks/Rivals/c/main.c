// The rival at the rows whose work is the kernel's: what plain C on epoll and read(2) needs for it. It
// answers to --list and --row NAME [--quick] in the format of the Swift programs.
#define _GNU_SOURCE
#include "rival.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

void verify(long observed, long expected, const char *what) {
  if (observed == expected) return;
  fprintf(stderr, "rival failed: %s: expected %ld, observed %ld\n", what, expected, observed);
  exit(70);
}

static struct measurement echo_1(long trips) { return measure_echo(1, trips); }
static struct measurement echo_64(long trips) { return measure_echo(64, trips); }
static struct measurement echo_1000(long trips) { return measure_echo(1000, trips); }

static const struct row {
  const char *name, *unit, *question;
  long count;
  struct measurement (*measure)(long count);
} rows[] = {
    {"pipe-event-round-trip", "ns", "a thread that waits in epoll, and a semaphore", 20000,
     measure_pipe_event},
    {"echo-1-connection", "ns", "an epoll loop in one thread", 20000, echo_1},
    {"echo-64-connections", "ns", "an epoll loop in one thread", 200000, echo_64},
    {"echo-1000-connections", "ns", "an epoll loop in one thread", 200000, echo_1000},
    {"read-cached-file", "s", "read(2) in a loop, 256 KiB each", 1L << 30, measure_file},
};

int main(int count, char **words) {
  const char *name = "";
  int divisor = 1, list = 0;
  for (int index = 1; index < count; index++) {
    if (strcmp(words[index], "--list") == 0) list = 1;
    else if (strcmp(words[index], "--quick") == 0) divisor = 10;
    else if (strcmp(words[index], "--row") == 0 && index + 1 < count) name = words[++index];
  }
  for (size_t index = 0; index < sizeof rows / sizeof *rows; index++) {
    const struct row *row = &rows[index];
    if (list) printf("%s\t%s\t%s\n", row->name, row->unit, row->question);
    if (strcmp(row->name, name) != 0) continue;
    struct measurement result = row->measure(row->count / divisor);
    printf("%s %f %ld %ld\n", row->name, result.value, result.operations, result.check);
    return 0;
  }
  if (list) return 0;
  fprintf(stderr, "usage: --list | --row NAME [--quick]\n");
  return 64;
}
