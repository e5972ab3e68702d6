// A parallel loop uses processors that the process may use only after its first loop.
// Statements: S77.

#include "check.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

// Set when the two iterations of one loop overlap.
static int running, overlapped;

static time_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

// Each iteration gives the other some time to begin, and tells whether it has.
static void meet(void *context, size_t index) {
  (void)context;
  (void)index;
  count_up(&running);
  for (int turn = 0; turn < 10000 && !count_of(&overlapped); turn++) {
    if (count_of(&running) == 2) count_up(&overlapped);
    sched_yield();
  }
  __atomic_fetch_sub(&running, 1, __ATOMIC_SEQ_CST);
}

int main(void) {
  cpu_set_t all, one;
  check_equal(sched_getaffinity(0, sizeof all, &all), 0);
  if (!on_concourse() || CPU_COUNT(&all) < 2) return finish();
  int first = 0;
  while (!CPU_ISSET(first, &all)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  check_equal(sched_setaffinity(0, sizeof one, &one), 0);
  dispatch_apply_f(2, DISPATCH_APPLY_AUTO, NULL, meet);
  check_equal(overlapped, 0);
  check_equal(sched_setaffinity(0, sizeof all, &all), 0);
  time_t end = now() + 60;
  while (!overlapped && now() < end) dispatch_apply_f(2, DISPATCH_APPLY_AUTO, NULL, meet);
  check(overlapped > 0);
  return finish();
}
