// Groups.
// Statements: S64-S67, S69.

#include "check.h"

static int notified_with;
static dispatch_group_t watched;
static event told;

static void tell(void *context) {
  notified_with = (int)(intptr_t)context;
  check_that(dispatch_group_wait(watched, DISPATCH_TIME_NOW) == 0, "empty when told", __FILE__, __LINE__);
  event_happens(&told);
}

static int sequence[3], sequence_length;
static void record(void *context) { sequence[sequence_length++] = (int)(intptr_t)context; }

static void *wait_on_thread(void *group) {
  return (void *)dispatch_group_wait((dispatch_group_t)group, DISPATCH_TIME_FOREVER);
}

int main(void) {
  event_init(&told);
  int counter = 0;
  dispatch_queue_t queue = dispatch_queue_create("queue", NULL);
  dispatch_queue_t global = dispatch_get_global_queue(0, 0);
  dispatch_group_t group = dispatch_group_create();
  watched = group;
  check_equal(dispatch_group_wait(group, DISPATCH_TIME_NOW), 0);
  check_equal(dispatch_group_wait(group, DISPATCH_TIME_FOREVER), 0);
  // Empty: notified at once.
  dispatch_group_notify_f(group, queue, (void *)1, tell);
  event_wait(&told);
  check_equal(notified_with, 1);

  dispatch_group_enter(group);
  dispatch_group_enter(group);
  errno = 0;
  check(dispatch_group_wait(group, DISPATCH_TIME_NOW) != 0);
  check_equal(errno, ETIMEDOUT);
  check(dispatch_group_wait(group, dispatch_time(DISPATCH_TIME_NOW, 2000000)) != 0);
  check(dispatch_group_wait(group, dispatch_walltime(NULL, 2000000)) != 0);
  dispatch_group_notify_f(group, queue, (void *)2, tell);
  dispatch_group_leave(group);
  drain(queue);
  check(!event_has_happened(&told));
  dispatch_group_leave(group);
  event_wait(&told);
  check_equal(notified_with, 2);

  // Reused: earlier notifications do not repeat.
  for (int i = 0; i < 1000; i++) dispatch_group_async_f(group, i % 2 ? queue : global, &counter, count_up);
  check_equal(dispatch_group_wait(group, DISPATCH_TIME_FOREVER), 0);
  check_equal(counter, 1000);
  drain(queue);
  check(!event_has_happened(&told));

  // Several notifications for one serial queue come in order.
  dispatch_group_enter(group);
  for (intptr_t i = 0; i < 3; i++) dispatch_group_notify_f(group, queue, (void *)(i + 5), record);
  dispatch_group_leave(group);
  drain(queue);
  check_equal(sequence_length, 3);
  check_equal(sequence[0], 5);
  check_equal(sequence[1], 6);
  check_equal(sequence[2], 7);

  // Several waiters wake together.
  pthread_t threads[4];
  dispatch_group_enter(group);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, wait_on_thread, group);
  dispatch_group_leave(group);
  for (int i = 0; i < 4; i++) {
    void *result = &counter;
    pthread_join(threads[i], &result);
    check(result == NULL);
  }

  // A group without references lives as long as it has members, and notifies.
  dispatch_group_t left = dispatch_group_create();
  event told_by_left;
  event_init(&told_by_left);
  dispatch_group_enter(left);
  dispatch_group_notify_f(left, global, &told_by_left, event_happens);
  dispatch_release(left);
  dispatch_group_leave(left);
  event_wait(&told_by_left);
  check(true);
  dispatch_release(group);
  dispatch_release(queue);
  return finish();
}
