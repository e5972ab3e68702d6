// What does it cost to enter and leave a group, and to be told that it is empty?
#include "bench.h"

struct work {
  dispatch_group_t group;
  dispatch_queue_t queue;
  struct counter notifications;
};

static long pass_enter_leave(void *context, long count) {
  struct work *work = context;
  long start = now();
  for (long index = 0; index < count; index++) {
    dispatch_group_enter(work->group);
    dispatch_group_leave(work->group);
  }
  long time = now() - start;
  dispatch_group_enter(work->group);
  verify(dispatch_group_wait(work->group, DISPATCH_TIME_NOW) != 0, 1, "the group has a member");
  dispatch_group_leave(work->group);
  verify(dispatch_group_wait(work->group, DISPATCH_TIME_NOW), 0, "the group is empty");
  return time;
}

static long pass_notify(void *context, long count) {
  struct work *work = context;
  long start = now();
  for (long index = 0; index < count; index++) {
    dispatch_group_enter(work->group);
    dispatch_group_notify_f(work->group, work->queue, &work->notifications, add_one);
    dispatch_group_leave(work->group);
  }
  dispatch_sync_f(work->queue, &work->notifications, add_one);
  long time = now() - start;
  verify(work->notifications.value, count + 1, "notifications");
  work->notifications.value = 0;
  return time;
}

static struct measurement measure(long count, pass_function pass) {
  struct work work = {
      .group = dispatch_group_create(), .queue = dispatch_queue_create("serial", NULL)};
  return quickest_pass(count, pass, &work);
}

struct measurement group_enter_leave(long count) { return measure(count, pass_enter_leave); }
struct measurement group_notify_f(long count) { return measure(count, pass_notify); }
