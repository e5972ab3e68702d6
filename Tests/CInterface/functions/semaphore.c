// Semaphores.
// Statements: S70-S73.

#include "check.h"

#include <time.h>

static dispatch_semaphore_t shared;
static int passed_through;

static void *take_many(void *context) {
  (void)context;
  for (int i = 0; i < 1000; i++) {
    if (dispatch_semaphore_wait(shared, DISPATCH_TIME_FOREVER) == 0) {
      __atomic_fetch_add(&passed_through, 1, __ATOMIC_SEQ_CST);
    }
  }
  return NULL;
}

static void *give_many(void *context) {
  (void)context;
  for (int i = 0; i < 1000; i++) dispatch_semaphore_signal(shared);
  return NULL;
}

static void *take_one(void *context) {
  (void)context;
  return (void *)dispatch_semaphore_wait(shared, DISPATCH_TIME_FOREVER);
}

int main(void) {
  check(dispatch_semaphore_create(-1) == NULL);
  check(dispatch_semaphore_create(INTPTR_MIN) == NULL);
  dispatch_semaphore_t big = dispatch_semaphore_create(INTPTR_MAX);
  if (big) dispatch_release(big);

  dispatch_semaphore_t two = dispatch_semaphore_create(2);
  check_equal(dispatch_semaphore_wait(two, DISPATCH_TIME_NOW), 0);
  check_equal(dispatch_semaphore_wait(two, DISPATCH_TIME_FOREVER), 0);
  errno = 0;
  check(dispatch_semaphore_wait(two, DISPATCH_TIME_NOW) != 0);
  check_equal(errno, ETIMEDOUT);
  struct timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  check(dispatch_semaphore_wait(two, dispatch_time(DISPATCH_TIME_NOW, 10000000)) != 0);
  clock_gettime(CLOCK_MONOTONIC, &after);
  check((after.tv_sec - before.tv_sec) * 1000000000ll + after.tv_nsec - before.tv_nsec >= 10000000);
  check(dispatch_semaphore_wait(two, dispatch_walltime(NULL, 2000000)) != 0);
  check(dispatch_semaphore_wait(two, dispatch_time(DISPATCH_TIME_NOW, -5)) != 0);
  check(dispatch_semaphore_wait(two, dispatch_walltime(NULL, -5)) != 0);
  // A wait that timed out took nothing.
  check_equal(dispatch_semaphore_signal(two), 0);
  check_equal(dispatch_semaphore_wait(two, DISPATCH_TIME_NOW), 0);
  check_equal(dispatch_semaphore_signal(two), 0);
  check_equal(dispatch_semaphore_signal(two), 0);
  check_equal(dispatch_semaphore_signal(two), 0);
  dispatch_release(two);

  shared = dispatch_semaphore_create(0);
  pthread_t takers[4], givers[4];
  for (int i = 0; i < 4; i++) {
    pthread_create(&takers[i], NULL, take_many, NULL);
    pthread_create(&givers[i], NULL, give_many, NULL);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(takers[i], NULL);
    pthread_join(givers[i], NULL);
  }
  check_equal(passed_through, 4000);
  check(dispatch_semaphore_wait(shared, DISPATCH_TIME_NOW) != 0);

  // A signal returns whether it woke a waiter: exactly as often as there are waiters.
  pthread_t waiter;
  pthread_create(&waiter, NULL, take_one, NULL);
  int woken = 0, given = 0;
  while (woken == 0 && given < 1) {
    woken += dispatch_semaphore_signal(shared) != 0;
    given++;
  }
  void *result = &given;
  pthread_join(waiter, &result);
  check(result == NULL);
  check(woken <= 1);
  dispatch_release(shared);
  return finish();
}
