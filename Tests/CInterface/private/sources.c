// Sources: mandatory cancel handlers, cancelling and waiting, interval timers.
// Statements: S105.

#include "check.h"

static event handled, cancelled, in_handler, go_on;
static int calls, ended;
static dispatch_source_t interval;

static void count_call(void *context) {
  (void)context;
  calls++;
  event_happens(&handled);
}

static void slow(void *context) {
  (void)context;
  event_happens(&in_handler);
  event_wait(&go_on);
  ended = 1;
}

static void tick(void *context) {
  (void)context;
  if (dispatch_source_get_data(interval) > 0) calls++;
  if (calls >= 3) dispatch_source_cancel(interval);
  event_happens(&handled);
}

int main(void) {
  event_init(&handled);
  event_init(&cancelled);
  event_init(&in_handler);
  event_init(&go_on);
  dispatch_queue_t queue = dispatch_queue_create("sources", NULL);

  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  dispatch_set_context(source, &cancelled);
  dispatch_source_set_event_handler_f(source, count_call);
  dispatch_source_set_mandatory_cancel_handler_f(source, event_happens);
  dispatch_activate(source);
  dispatch_source_merge_data(source, 1);
  event_wait(&handled);
  check_equal(calls, 1);
  struct dispatch_source_extended_data_s extended = {77, 77};
  check_equal(dispatch_source_get_extended_data(source, &extended, sizeof extended), sizeof extended);
  dispatch_source_cancel(source);
  event_wait(&cancelled);
  dispatch_release(source);
  check(true);

  source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  dispatch_source_set_mandatory_cancel_handler(source, ^{
    event_happens(&cancelled);
  });
  dispatch_activate(source);
  dispatch_source_cancel(source);
  event_wait(&cancelled);
  dispatch_release(source);

  // The running handler ends before the wait does.
  source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  dispatch_source_set_event_handler_f(source, slow);
  dispatch_activate(source);
  dispatch_source_merge_data(source, 1);
  event_wait(&in_handler);
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 2000000), dispatch_get_global_queue(0, 0), &go_on, event_happens);
  dispatch_source_cancel_and_wait(source);
  check_equal(ended, 1);
  check(dispatch_source_testcancel(source) != 0);
  dispatch_release(source);

  calls = 0;
  interval = dispatch_source_create(DISPATCH_SOURCE_TYPE_INTERVAL, 2, 0, queue);
  check(interval != NULL);
  dispatch_set_context(interval, &cancelled);
  dispatch_source_set_event_handler_f(interval, tick);
  dispatch_source_set_cancel_handler_f(interval, event_happens);
  dispatch_activate(interval);
  event_wait(&cancelled);
  check_equal(calls, 3);
  dispatch_release(interval);
  dispatch_release(queue);
  return finish();
}
