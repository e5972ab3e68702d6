// Timers.
// Statements: S85-S91.

#include "check.h"

static dispatch_source_t timer;
static event fired, cancelled;
static uintptr_t total, last;
static int calls;

static void fire(void *context) {
  (void)context;
  last = dispatch_source_get_data(timer);
  total += last;
  calls++;
  event_happens(&fired);
}

static void cancel_in_handler(void *context) {
  fire(context);
  if (total >= 5) dispatch_source_cancel(timer);
}

static void note_cancel(void *context) {
  (void)context;
  event_happens(&cancelled);
}

static void make(dispatch_queue_t queue, unsigned long flags, dispatch_function_t handler) {
  timer = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, flags, queue);
  check(timer != NULL);
  total = last = 0;
  calls = 0;
  dispatch_source_set_event_handler_f(timer, handler);
  dispatch_source_set_cancel_handler_f(timer, note_cancel);
}

static void end(void) {
  dispatch_source_cancel(timer);
  event_wait(&cancelled);
  dispatch_release(timer);
}

int main(void) {
  event_init(&fired);
  event_init(&cancelled);
  dispatch_queue_t queue = dispatch_queue_create("timers", NULL);

  // Once; then set again, and firing at once if its time is past.
  make(queue, 0, fire);
  dispatch_source_set_timer(timer, dispatch_time(DISPATCH_TIME_NOW, 5000000), DISPATCH_TIME_FOREVER, 0);
  dispatch_activate(timer);
  event_wait(&fired);
  check_equal(last, 1);
  dispatch_source_set_timer(timer, DISPATCH_TIME_NOW, DISPATCH_TIME_FOREVER, 0);
  event_wait(&fired);
  check_equal(last, 1);
  dispatch_source_set_timer(timer, dispatch_time(DISPATCH_TIME_NOW, -5000000), DISPATCH_TIME_FOREVER, 0);
  event_wait(&fired);
  dispatch_source_set_timer(timer, dispatch_walltime(NULL, 1000000), DISPATCH_TIME_FOREVER, NSEC_PER_MSEC);
  event_wait(&fired);
  check_equal(calls, 4);
  check_equal(total, 4);
  // Without a bound for its lateness.
  dispatch_source_set_timer(timer, dispatch_time(DISPATCH_TIME_NOW, 1000000), DISPATCH_TIME_FOREVER, DISPATCH_TIME_FOREVER);
  event_wait(&fired);
  check_equal(calls, 5);
  // Stopped; then it does not fire while others do.
  dispatch_source_set_timer(timer, DISPATCH_TIME_FOREVER, DISPATCH_TIME_FOREVER, 0);
  event other;
  event_init(&other);
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 10000000), queue, &other, event_happens);
  event_wait(&other);
  check(!event_has_happened(&fired));
  end();

  // Repeating, and cancelled by its own handler.
  make(queue, DISPATCH_TIMER_STRICT, cancel_in_handler);
  check_equal(dispatch_source_get_mask(timer), DISPATCH_TIMER_STRICT);
  dispatch_source_set_timer(timer, DISPATCH_TIME_NOW, 2000000, 0);
  dispatch_activate(timer);
  event_wait(&cancelled);
  check(total >= 5);
  check(dispatch_source_testcancel(timer) != 0);
  int calls_then = calls;
  // Set after cancellation: no effect.
  dispatch_source_set_timer(timer, DISPATCH_TIME_NOW, 1000000, 0);
  drain(queue);
  check_equal(calls, calls_then);
  dispatch_release(timer);
  while (event_has_happened(&fired)) {
  }

  // Intervals during a suspension are counted in one call.
  make(queue, 0, fire);
  dispatch_source_set_timer(timer, DISPATCH_TIME_NOW, 1000000, 0);
  dispatch_suspend(queue);
  dispatch_activate(timer);
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 30000000), dispatch_get_global_queue(0, 0), &other,
                   event_happens);
  event_wait(&other);
  check_equal(calls, 0);
  dispatch_resume(queue);
  event_wait(&fired);
  drain(queue);
  check(total >= 20);
  end();
  while (event_has_happened(&fired)) {
  }

  // Never set: never fires.
  make(queue, 0, fire);
  dispatch_activate(timer);
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 5000000), queue, &other, event_happens);
  event_wait(&other);
  check_equal(calls, 0);
  end();
  dispatch_release(queue);
  return finish();
}
