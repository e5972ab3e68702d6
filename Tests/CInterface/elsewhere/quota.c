// The pool is as wide as the quota of the control group, from the first snapshot on. The environment variable PROCESSORS
// has the quota, rounded up.

#include "check.h"

#include <concourse/inspection.h>
#include <time.h>

static int running, most;

static void compute(void *group) {
  (void)group;
  int now = __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
  int seen = count_of(&most);
  while (now > seen) {
    if (__atomic_compare_exchange_n(&most, &seen, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) break;
  }
  // Shorter than the time after which one more thread joins those that compute.
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    clock_gettime(CLOCK_MONOTONIC, &end);
  } while ((end.tv_sec - begin.tv_sec) * 1000000000 + (end.tv_nsec - begin.tv_nsec) < 1000000);
  __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
}

static long long width(void) {
  struct concourse_pool pool = {.size = sizeof pool};
  concourse_inspect_pool(&pool);
  return pool.width;
}

int main(void) {
  const char *processors = getenv("PROCESSORS");
  long long expected = processors ? atoi(processors) : width();
  check(expected >= 1);
  check_equal(width(), expected);
  dispatch_group_t group = dispatch_group_create();
  for (int i = 0; i < 20; i++) dispatch_group_async_f(group, dispatch_get_global_queue(NORMAL, 0), NULL, compute);
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  check_equal(width(), expected);
  printf("width %lld, at most %d items at once\n", expected, most);
  dispatch_release(group);
  return finish();
}
