// dispatch_once, with and without the inline fast path.
// Statements: S74.

#include "check.h"

static dispatch_once_t predicate, raced, plain;
static int done, raced_done;
static int seen_incomplete;
static event in_body, go_on;

static void once_body(void *context) { *(int *)context += 1; }

static void slow_body(void *context) {
  event_happens(&in_body);
  event_wait(&go_on);
  count_up(context);
}

static void *race(void *context) {
  dispatch_once_f(&raced, context, slow_body);
  if (count_of(&raced_done) != 1) count_up(&seen_incomplete);
  return NULL;
}

int main(void) {
  check_equal(sizeof(dispatch_once_t), sizeof(intptr_t));
  for (int i = 0; i < 5; i++) dispatch_once_f(&predicate, &done, once_body);
  check_equal(done, 1);
  check(predicate == ~(dispatch_once_t)0);

  event_init(&in_body);
  event_init(&go_on);
  pthread_t threads[6];
  for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, race, &raced_done);
  event_wait(&in_body);
  check(raced != ~(dispatch_once_t)0);
  check_equal(count_of(&raced_done), 0);
  event_happens(&go_on);
  for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
  check_equal(raced_done, 1);
  check_equal(seen_incomplete, 0);
  check(raced == ~(dispatch_once_t)0);

  // The function itself, as called by code without the inline fast path.
#undef dispatch_once_f
  int count = 0;
  dispatch_once_f(&plain, &count, once_body);
  dispatch_once_f(&plain, &count, once_body);
  check_equal(count, 1);
  check(plain == ~(dispatch_once_t)0);
  // The fast path tests only for all ones.
  dispatch_once_t finished = ~(dispatch_once_t)0;
  dispatch_once_f(&finished, &count, once_body);
  check_equal(count, 1);
  return finish();
}
