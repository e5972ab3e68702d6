// What does a task of a fan-out cost: asynced with a group onto a global queue, and waited for?
#include "bench.h"

struct work {
  dispatch_group_t group;
  struct slots slots;
};

static dispatch_queue_t queue(void) {
  return dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
}

static long finish(struct work *work, long start, long count) {
  verify(dispatch_group_wait(work->group, DISPATCH_TIME_FOREVER), 0, "the group is empty");
  long time = now() - start;
  verify(take_marked_once(work->slots), count, "tasks that ran once");
  return time;
}

static long pass_f(void *context, long count) {
  struct work *work = context;
  dispatch_queue_t global = queue();
  long start = now();
  for (long index = 0; index < count; index++)
    dispatch_group_async_f(work->group, global, work->slots.bytes + index, mark_slot);
  return finish(work, start, count);
}

static long pass_block(void *context, long count) {
  struct work *work = context;
  dispatch_queue_t global = queue();
  long start = now();
  for (long index = 0; index < count; index++) {
    char *slot = work->slots.bytes + index;
    dispatch_group_async(work->group, global, ^{ mark_slot(slot); });
  }
  return finish(work, start, count);
}

static struct measurement measure(long count, pass_function pass) {
  struct work work = {dispatch_group_create(), make_slots(count)};
  return quickest_pass(count, pass, &work);
}

struct measurement group_async_f(long count) { return measure(count, pass_f); }
struct measurement group_async_block(long count) { return measure(count, pass_block); }
