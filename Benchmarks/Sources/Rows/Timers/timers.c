// What do timers cost: many calls of dispatch_after_f at once, and a timer source that fires or is cancelled?
#include "rows.h"

#include <dispatch/dispatch.h>

struct work {
  dispatch_queue_t queue;
  dispatch_source_t timer;
  dispatch_semaphore_t done;
  struct counter fired;
  long expected;
};

static struct work make_work(long expected) {
  return (struct work){
      .queue = dispatch_queue_create("serial", NULL), .done = dispatch_semaphore_create(0), .expected = expected};
}

static void count_one(void *context) {
  struct work *work = context;
  if (++work->fired.value == work->expected) dispatch_semaphore_signal(work->done);
}

// MARK: dispatch_after_f

static struct measurement after_f(long count) {
  struct work work = make_work(count);
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    work.fired.value = 0;
    long start = bench_now();
    for (long index = 0; index < count; index++)
      dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, NSEC_PER_MSEC), work.queue, &work, count_one);
    dispatch_semaphore_wait(work.done, DISPATCH_TIME_FOREVER);
    long time = bench_now() - start;
    bench_record(&passes, time);
    verify(work.fired.value, count, "tasks that ran");
    verify(time >= (long)NSEC_PER_MSEC, 1, "the last one did not run early");
  }
  return per_operation(&passes, count, count);
}

// MARK: A timer source that fires and is set again by its handler

static void set(void *context) {
  struct work *work = context;
  dispatch_source_set_timer(work->timer, dispatch_time(DISPATCH_TIME_NOW, 0), DISPATCH_TIME_FOREVER, 0);
}

static void fire(void *context) {
  struct work *work = context;
  verify((long)dispatch_source_get_data(work->timer), 1, "expirations since the last time");
  if (++work->fired.value == work->expected) dispatch_semaphore_signal(work->done);
  else set(work);
}

static struct measurement timer_source(long count) {
  struct work work = make_work(count);
  work.timer = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0, work.queue);
  dispatch_source_set_timer(work.timer, DISPATCH_TIME_FOREVER, DISPATCH_TIME_FOREVER, 0);
  dispatch_set_context(work.timer, &work);
  dispatch_source_set_event_handler_f(work.timer, fire);
  dispatch_activate(work.timer);
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    work.fired.value = 0;
    long start = bench_now();
    dispatch_sync_f(work.queue, &work, set);
    dispatch_semaphore_wait(work.done, DISPATCH_TIME_FOREVER);
    bench_record(&passes, bench_now() - start);
    verify(work.fired.value, count, "times that the timer fired");
  }
  return per_operation(&passes, count, count);
}

// MARK: A timer source, made and cancelled

static void unexpected(void *context) {
  (void)context;
  verify(1, 0, "timers that fired an hour early");
}

static struct measurement timer_source_life(long count) {
  struct work work = make_work(count);
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    work.fired.value = 0;
    long start = bench_now();
    for (long index = 0; index < count; index++) {
      dispatch_source_t timer = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0, work.queue);
      dispatch_source_set_timer(
          timer, dispatch_time(DISPATCH_TIME_NOW, 3600 * NSEC_PER_SEC), DISPATCH_TIME_FOREVER, 0);
      dispatch_set_context(timer, &work);
      dispatch_source_set_event_handler_f(timer, unexpected);
      dispatch_source_set_cancel_handler_f(timer, count_one);
      dispatch_activate(timer);
      dispatch_source_cancel(timer);
      dispatch_release(timer);
    }
    dispatch_semaphore_wait(work.done, DISPATCH_TIME_FOREVER);
    bench_record(&passes, bench_now() - start);
    verify(work.fired.value, count, "cancel handlers that ran");
  }
  return per_operation(&passes, count, count);
}

const struct row timers_rows[] = {
    {"after-f", after_f, 100000, "dispatch_after_f 1 ms ahead, until all have run", NULL},
    {"timer-source", timer_source, 5000, "a timer source fires and is set again by its handler", NULL},
    {"timer-source-life", timer_source_life, 50000, "a timer source an hour ahead, made and cancelled", NULL},
    {0},
};
