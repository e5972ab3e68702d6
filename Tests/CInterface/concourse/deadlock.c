// Cycles of waits that can never end, and waits that look like one.
// Statements: S153.

#include "check.h"

static dispatch_queue_t first, second, child;
static event at_first, at_second;
static dispatch_once_t predicate;

static void make_queues(void) {
  first = dispatch_queue_create("first", NULL);
  second = dispatch_queue_create("second", NULL);
  event_init(&at_first);
  event_init(&at_second);
}

// Two items that each go on when both run.
static void meet_at_first(void) {
  event_happens(&at_first);
  event_wait(&at_second);
}
static void meet_at_second(void) {
  event_happens(&at_second);
  event_wait(&at_first);
}

static void on_first(void *work) {
  meet_at_first();
  dispatch_sync_f(second, work, nothing);
}
static void on_second(void *work) {
  meet_at_second();
  dispatch_sync_f(first, work, nothing);
}
static void two_queues(void) {
  make_queues();
  dispatch_async_f(first, NULL, on_first);
  dispatch_async_f(second, NULL, on_second);
  wait_for_death();
}

static void barrier_on_second(void *work) {
  meet_at_first();
  dispatch_barrier_sync_f(second, work, nothing);
}
static void barrier(void) {
  make_queues();
  second = dispatch_queue_create("shared", DISPATCH_QUEUE_CONCURRENT);
  dispatch_async_f(first, NULL, barrier_on_second);
  dispatch_async_f(second, NULL, on_second);
  wait_for_death();
}

static void on_first_for_child(void *work) {
  meet_at_first();
  dispatch_async_f(child, work, nothing);
  dispatch_async_and_wait_f(child, work, nothing);
}
// The child's target is set while it is active.
static void target(void) {
  make_queues();
  child = dispatch_queue_create("child", NULL);
  dispatch_set_target_queue(child, second);
  dispatch_async_f(first, NULL, on_first_for_child);
  dispatch_async_f(second, NULL, on_second);
  wait_for_death();
}

static void once_body(void *work) { on_second(work); }
static void once_on_first(void *work) {
  meet_at_first();
  dispatch_once_f(&predicate, work, nothing);
}
static void once(void) {
  make_queues();
  dispatch_async_f(first, NULL, once_on_first);
  dispatch_once_f(&predicate, NULL, once_body);
}

static void main_for_first(void *work) {
  meet_at_second();
  dispatch_sync_f(first, work, nothing);
}
static void first_for_main(void *work) {
  meet_at_first();
  dispatch_sync_f(dispatch_get_main_queue(), work, nothing);
}
static void main_queue(void) {
  make_queues();
  dispatch_async_f(dispatch_get_main_queue(), NULL, main_for_first);
  dispatch_async_f(first, NULL, first_for_main);
  dispatch_main();
}

// Both items wait for what the other's queue does, but one of them only for a moment.
static void first_for_a_moment(void *group) {
  meet_at_first();
  check(dispatch_group_wait(group, dispatch_time(DISPATCH_TIME_NOW, 20 * NSEC_PER_MSEC)) != 0);
}
static void resume(void *queue) { dispatch_resume((dispatch_object_t){._dq = queue}); }

static void near_misses(void) {
  make_queues();
  dispatch_group_t group = dispatch_group_create();
  dispatch_group_async_f(group, second, NULL, on_second);
  dispatch_async_f(first, group, first_for_a_moment);
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  // A queue that another thread resumes.
  dispatch_suspend(second);
  dispatch_async_f(dispatch_get_global_queue(0, 0), second, resume);
  dispatch_sync_f(second, NULL, nothing);
}

int main(void) {
  dies_saying(two_queues, "deadlock: 2 threads wait for one another, for queue \"first\", for queue \"second\" [C115]\n");
  dies_saying(
      barrier, "deadlock: 2 threads wait for one another, for a barrier on queue \"shared\", for queue \"first\" [C115]\n");
  dies_saying(target, "deadlock: 2 threads wait for one another, for queue \"child\", for queue \"first\" [C115]\n");
  dies_saying(once, "deadlock: 2 threads wait for one another, for a body that runs once, for queue \"first\" [C115]\n");
  dies_saying(
      main_queue,
      "deadlock: 2 threads wait for one another, for queue \"com.apple.main-thread\", for queue \"first\" [C115]\n");
  near_misses();
  return finish();
}
