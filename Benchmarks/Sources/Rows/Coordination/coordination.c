// What do groups, semaphores, parallel loops and once cost?
#include "rows.h"

#include <dispatch/dispatch.h>

// The header's inline check would answer without the library, so `once-f` calls the function, as callers from other
// languages do.
#undef dispatch_once_f

static dispatch_queue_t global(void) { return dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0); }

// MARK: Groups: fan-out onto a global queue

typedef void fan_out_function(dispatch_group_t group, dispatch_queue_t queue, char *bytes, long count);

static void fan_out_f(dispatch_group_t group, dispatch_queue_t queue, char *bytes, long count) {
  for (long index = 0; index < count; index++) dispatch_group_async_f(group, queue, bytes + index, mark_slot);
}

static void fan_out_block(dispatch_group_t group, dispatch_queue_t queue, char *bytes, long count) {
  for (long index = 0; index < count; index++) {
    char *slot = bytes + index;
    dispatch_group_async(group, queue, ^{ mark_slot(slot); });
  }
}

static struct measurement measure_fan_out(long count, fan_out_function fan_out) {
  dispatch_group_t group = dispatch_group_create();
  dispatch_queue_t queue = global();
  struct slots slots = make_slots(count);
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    long start = bench_now();
    fan_out(group, queue, slots.bytes, count);
    verify(dispatch_group_wait(group, DISPATCH_TIME_FOREVER), 0, "the group is empty");
    bench_record(&passes, bench_now() - start);
    verify(take_marked_once(slots), count, "tasks that ran once");
  }
  return per_operation(&passes, count, count);
}

static struct measurement group_async_f(long count) { return measure_fan_out(count, fan_out_f); }
static struct measurement group_async_block(long count) { return measure_fan_out(count, fan_out_block); }

// MARK: Groups: enter, leave, notify

static struct measurement group_enter_leave(long count) {
  dispatch_group_t group = dispatch_group_create();
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    long start = bench_now();
    for (long index = 0; index < count; index++) {
      dispatch_group_enter(group);
      dispatch_group_leave(group);
    }
    bench_record(&passes, bench_now() - start);
    dispatch_group_enter(group);
    verify(dispatch_group_wait(group, DISPATCH_TIME_NOW) != 0, 1, "the group has a member");
    dispatch_group_leave(group);
    verify(dispatch_group_wait(group, DISPATCH_TIME_NOW), 0, "the group is empty");
  }
  return per_operation(&passes, count, count);
}

static struct measurement group_notify_f(long count) {
  dispatch_group_t group = dispatch_group_create();
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  struct counter notifications;
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    notifications.value = 0;
    long start = bench_now();
    for (long index = 0; index < count; index++) {
      dispatch_group_enter(group);
      dispatch_group_notify_f(group, queue, &notifications, add_one);
      dispatch_group_leave(group);
    }
    dispatch_sync_f(queue, &notifications, add_one);
    bench_record(&passes, bench_now() - start);
    verify(notifications.value, count + 1, "notifications");
  }
  return per_operation(&passes, count, count);
}

// MARK: Semaphores: no thread waits, and two threads wake one another

static struct measurement semaphore_signal_wait(long count) {
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(0);
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    long start = bench_now();
    for (long index = 0; index < count; index++) {
      dispatch_semaphore_signal(semaphore);
      dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER);
    }
    bench_record(&passes, bench_now() - start);
    verify(dispatch_semaphore_wait(semaphore, DISPATCH_TIME_NOW) != 0, 1, "every signal was taken");
  }
  dispatch_release(semaphore);
  return per_operation(&passes, count, count);
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

static struct measurement semaphore_ping_pong(long count) {
  // Thread 0 has the first stroke; at the end of a pass the next stroke is its own again.
  struct court court = {.turns = {dispatch_semaphore_create(1), dispatch_semaphore_create(0)}, .share = count / 2};
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    court.strokes.value = 0;
    bench_record(&passes, bench_time_two_threads(play, &court));
    verify(court.strokes.value, count, "strokes, in turn");
  }
  return per_operation(&passes, count, count);
}

// MARK: Parallel loops

static void empty(void *context, size_t index) {
  (void)context;
  bench_opaque((long)index);
}

static void mark(void *slots, size_t index) { mark_slot((char *)slots + index); }

static struct measurement apply_f(long count) {
  struct slots slots = make_slots(count);
  dispatch_apply_f((size_t)count, global(), slots.bytes, mark);
  verify(take_marked_once(slots), count, "indices visited once");
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    long start = bench_now();
    dispatch_apply_f((size_t)count, global(), NULL, empty);
    bench_record(&passes, bench_now() - start);
  }
  return per_operation(&passes, count, count);
}

static struct measurement apply_block(long count) {
  struct slots slots = make_slots(count);
  dispatch_apply((size_t)count, global(), ^(size_t index) { mark_slot(slots.bytes + index); });
  verify(take_marked_once(slots), count, "indices visited once");
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    long start = bench_now();
    dispatch_apply((size_t)count, global(), ^(size_t index) { bench_opaque((long)index); });
    bench_record(&passes, bench_now() - start);
  }
  return per_operation(&passes, count, count);
}

// MARK: Once that is done

static struct measurement once_f(long count) {
  static dispatch_once_t predicate;
  static struct counter runs;
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    long start = bench_now();
    for (long index = 0; index < count; index++) dispatch_once_f(&predicate, &runs, add_one);
    bench_record(&passes, bench_now() - start);
    verify(runs.value, 1, "initializations");
  }
  return per_operation(&passes, count, count);
}

const struct row coordination_rows[] = {
    {"apply-f", apply_f, 10000000, "parallel loop that does nothing", NULL},
    {"apply-block", apply_block, 10000000, "the same with a block", NULL},
    {"group-async-f", group_async_f, 300000, "fan-out of a group onto a global queue, wait", NULL},
    {"group-async-block", group_async_block, 300000, "the same with blocks", NULL},
    {"group-enter-leave", group_enter_leave, 5000000, "enter, then leave an empty group", NULL},
    {"group-notify-f", group_notify_f, 200000, "an empty group notifies a serial queue", NULL},
    {"semaphore-signal-wait", semaphore_signal_wait, 10000000, "signal, then wait: no thread blocks", NULL},
    {"semaphore-ping-pong", semaphore_ping_pong, 20000, "two threads on two cores wake one another", NULL},
    {"once-f", once_f, 50000000, "dispatch_once_f that is done, by the library's function", NULL},
    {0},
};
