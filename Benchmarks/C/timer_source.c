// What does a timer source cost: to fire and be set again, and to be made and cancelled?
#include "bench.h"

struct work {
  dispatch_queue_t queue;
  dispatch_source_t timer;
  dispatch_semaphore_t done;
  struct counter fired;
  long expected;
};

static void set(struct work *work) {
  dispatch_source_set_timer(work->timer, dispatch_time(DISPATCH_TIME_NOW, 0), DISPATCH_TIME_FOREVER, 0);
}

static void fire(void *context) {
  struct work *work = context;
  verify((long)dispatch_source_get_data(work->timer), 1, "expirations since the last time");
  if (++work->fired.value == work->expected) dispatch_semaphore_signal(work->done);
  else set(work);
}

static void start(void *work) { set(work); }

static long pass_fire(void *context, long count) {
  struct work *work = context;
  work->expected = count;
  work->fired.value = 0;
  long begin = now();
  dispatch_sync_f(work->queue, work, start);
  dispatch_semaphore_wait(work->done, DISPATCH_TIME_FOREVER);
  long time = now() - begin;
  verify(work->fired.value, count, "times that the timer fired");
  return time;
}

struct measurement timer_source(long count) {
  dispatch_queue_t queue = dispatch_queue_create("serial", NULL);
  struct work work = {
      .queue = queue, .timer = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0, queue),
      .done = dispatch_semaphore_create(0)};
  dispatch_source_set_timer(work.timer, DISPATCH_TIME_FOREVER, DISPATCH_TIME_FOREVER, 0);
  dispatch_set_context(work.timer, &work);
  dispatch_source_set_event_handler_f(work.timer, fire);
  dispatch_activate(work.timer);
  return quickest_pass(count, pass_fire, &work);
}

static void unexpected(void *context) {
  (void)context;
  verify(1, 0, "timers that fired an hour early");
}

static void cancelled(void *context) {
  struct work *work = context;
  if (++work->fired.value == work->expected) dispatch_semaphore_signal(work->done);
}

static long pass_life(void *context, long count) {
  struct work *work = context;
  work->expected = count;
  work->fired.value = 0;
  long begin = now();
  for (long index = 0; index < count; index++) {
    dispatch_source_t timer = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0, work->queue);
    dispatch_source_set_timer(
        timer, dispatch_time(DISPATCH_TIME_NOW, 3600 * NSEC_PER_SEC), DISPATCH_TIME_FOREVER, 0);
    dispatch_set_context(timer, work);
    dispatch_source_set_event_handler_f(timer, unexpected);
    dispatch_source_set_cancel_handler_f(timer, cancelled);
    dispatch_activate(timer);
    dispatch_source_cancel(timer);
    dispatch_release(timer);
  }
  dispatch_semaphore_wait(work->done, DISPATCH_TIME_FOREVER);
  long time = now() - begin;
  verify(work->fired.value, count, "cancel handlers that ran");
  return time;
}

struct measurement timer_source_life(long count) {
  struct work work = {
      .queue = dispatch_queue_create("serial", NULL), .done = dispatch_semaphore_create(0)};
  return quickest_pass(count, pass_life, &work);
}
