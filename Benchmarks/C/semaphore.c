// What does a semaphore cost, when nobody has to wait and when two threads wake one another?
#include "bench.h"

static long pass_pair(void *context, long count) {
  dispatch_semaphore_t semaphore = context;
  long start = now();
  for (long index = 0; index < count; index++) {
    dispatch_semaphore_signal(semaphore);
    dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER);
  }
  long time = now() - start;
  verify(dispatch_semaphore_wait(semaphore, DISPATCH_TIME_NOW) != 0, 1, "every signal was taken");
  return time;
}

struct measurement semaphore_signal_wait(long count) {
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(0);
  struct measurement result = quickest_pass(count, pass_pair, semaphore);
  dispatch_release(semaphore);
  return result;
}

struct court {
  dispatch_semaphore_t turns[2];
  struct counter strokes;
  long share;
};

static void play(void *context, int thread) {
  struct court *court = context;
  for (long index = 0; index < court->share; index++) {
    dispatch_semaphore_wait(court->turns[thread], DISPATCH_TIME_FOREVER);
    court->strokes.value++;
    dispatch_semaphore_signal(court->turns[1 - thread]);
  }
}

static long pass_court(void *context, long count) {
  struct court *court = context;
  court->strokes.value = 0;
  court->share = count / 2;
  long time = time_two_threads(play, court);
  verify(court->strokes.value, count, "strokes, in turn");
  return time;
}

struct measurement semaphore_ping_pong(long count) {
  // Thread 0 has the first stroke, and at the end of a pass the next one.
  struct court court = {.turns = {dispatch_semaphore_create(1), dispatch_semaphore_create(0)}};
  return quickest_pass(count, pass_court, &court);
}
