// Order, exclusion, barriers, the thread of synchronous items, and items that come later.
// Statements: S1, S2, S4-S6, S9, S11, S15, S81, S82, S84.

#include "check.h"

#include <time.h>

enum { many = 20000 };

static int next_number;
static bool in_order = true;
static pthread_t seen_thread;

static void take_number(void *context) {
  if (next_number != (int)(intptr_t)context) in_order = false;
  next_number++;
}

static void see_thread(void *context) {
  (void)context;
  seen_thread = pthread_self();
}

static void order(void) {
  dispatch_queue_t queue = dispatch_queue_create("order", NULL);
  for (intptr_t i = 0; i < many; i++) {
    switch (i % 4) {
      case 0: dispatch_barrier_async_f(queue, (void *)i, take_number); break;
      case 1:
        if (i % 1000 == 1) {
          dispatch_sync_f(queue, (void *)i, take_number);
          break;
        }
        // fall through
      default: dispatch_async_f(queue, (void *)i, take_number);
    }
  }
  dispatch_barrier_sync_f(queue, (void *)(intptr_t)many, take_number);
  check(in_order);
  check_equal(next_number, many + 1);
  dispatch_sync_f(queue, NULL, see_thread);
  check(pthread_equal(seen_thread, pthread_self()));
  dispatch_barrier_sync_f(queue, NULL, see_thread);
  check(pthread_equal(seen_thread, pthread_self()));
  dispatch_async_and_wait_f(queue, NULL, see_thread);
  dispatch_barrier_async_and_wait_f(queue, (void *)(intptr_t)(many + 1), take_number);
  check_equal(next_number, many + 2);
  check(in_order);
  dispatch_release(queue);
}

// Two items that each wait for the other.
static event first_there, second_there;

static void meet_first(void *done) {
  event_happens(&first_there);
  event_wait(&second_there);
  event_happens(done);
}

static void meet_second(void *done) {
  event_happens(&second_there);
  event_wait(&first_there);
  event_happens(done);
}

static void overlap(void) {
  event done;
  event_init(&done);
  event_init(&first_there);
  event_init(&second_there);
  dispatch_queue_t concurrent = dispatch_queue_create("concurrent", DISPATCH_QUEUE_CONCURRENT);
  dispatch_queue_t queues[] = {concurrent, dispatch_get_global_queue(0, 0),
                               dispatch_get_global_queue(BACKGROUND, 0)};
  for (int i = 0; i < 3; i++) {
    dispatch_async_f(queues[i], &done, meet_first);
    dispatch_async_f(queues[i], &done, meet_second);
    event_wait(&done);
    event_wait(&done);
    check(!event_has_happened(&done));
  }
  // So may two serial queues.
  dispatch_queue_t one = dispatch_queue_create("one", NULL), other = dispatch_queue_create("other", NULL);
  dispatch_async_f(one, &done, meet_first);
  dispatch_async_f(other, &done, meet_second);
  event_wait(&done);
  event_wait(&done);
  check(!event_has_happened(&done));
  dispatch_release(one);
  dispatch_release(other);
  dispatch_release(concurrent);
}

static int running, most, barriers_alone, barriers_seen;

static void ordinary(void *context) {
  (void)context;
  int now = __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
  if (now > most) most = now;
  __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
}

static void alone(void *context) {
  (void)context;
  barriers_seen++;
  if (__atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST) == 1) barriers_alone++;
  __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
}

static void barriers(void) {
  dispatch_queue_t queue = dispatch_queue_create("barriers", DISPATCH_QUEUE_CONCURRENT);
  for (int i = 0; i < 4000; i++) {
    if (i % 40 == 0) dispatch_barrier_async_f(queue, NULL, alone);
    if (i % 400 == 0) dispatch_barrier_sync_f(queue, NULL, alone);
    if (i % 1000 == 0) dispatch_barrier_async_and_wait_f(queue, NULL, alone);
    dispatch_async_f(queue, NULL, ordinary);
    if (i % 100 == 0) dispatch_sync_f(queue, NULL, ordinary);
  }
  dispatch_barrier_sync_f(queue, NULL, alone);
  check_equal(barriers_seen, 100 + 10 + 4 + 1);
  check_equal(barriers_alone, barriers_seen);
  dispatch_release(queue);
}

static void nested_inner(void *counter) { count_up(counter); }
static dispatch_queue_t nested_queue;
static void nested_outer(void *counter) { dispatch_sync_f(nested_queue, counter, nested_inner); }

static void nesting(void) {
  int counter = 0;
  nested_queue = dispatch_queue_create("nested", DISPATCH_QUEUE_CONCURRENT);
  dispatch_sync_f(nested_queue, &counter, nested_outer);
  check_equal(counter, 1);
  dispatch_release(nested_queue);
}

static uint64_t now_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static int turn;
static int turn_of[3];

static void note_turn(void *place) { *(int *)place = ++turn; }

static void later(void) {
  event done;
  event_init(&done);
  dispatch_queue_t queue = dispatch_queue_create("later", NULL);
  uint64_t begin = now_nanoseconds();
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 20000000), queue, &done, event_happens);
  event_wait(&done);
  check(now_nanoseconds() - begin >= 20000000);
  // Deadlines count, not the order of submission.
  dispatch_suspend(queue);
  dispatch_time_t base = dispatch_time(DISPATCH_TIME_NOW, 0);
  dispatch_after_f(dispatch_time(base, 600000000), queue, &turn_of[2], note_turn);
  dispatch_after_f(dispatch_time(base, 600000000), queue, &done, event_happens);
  dispatch_after_f(dispatch_time(base, 300000000), queue, &turn_of[1], note_turn);
  dispatch_after_f(DISPATCH_TIME_NOW, queue, &turn_of[0], note_turn);
  dispatch_resume(queue);
  event_wait(&done);
  drain(queue);
  check_equal(turn_of[0], 1);
  check_equal(turn_of[1], 2);
  check_equal(turn_of[2], 3);
  // The past is now, on both clocks.
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, -1000000000), queue, &done, event_happens);
  dispatch_after_f(dispatch_walltime(NULL, -1000000000), queue, &done, event_happens);
  dispatch_after_f(dispatch_walltime(NULL, 1000000), queue, &done, event_happens);
  // Forever is never.
  static event never;
  event_init(&never);
  dispatch_after_f(DISPATCH_TIME_FOREVER, queue, &never, event_happens);
  // The queue lives until then without other references.
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 1000000), queue, &done, event_happens);
  dispatch_release(queue);
  for (int i = 0; i < 4; i++) event_wait(&done);
  check(!event_has_happened(&never));
}

int main(void) {
  order();
  overlap();
  barriers();
  nesting();
  later();
  return finish();
}
