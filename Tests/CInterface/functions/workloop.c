// Workloops, and waiting for asynchronous items.
// Statements: S11, S20.

#include "check.h"

static int next_number;
static bool in_order = true;
static dispatch_queue_t current;

static void take_number(void *context) {
  if (next_number++ != (int)(intptr_t)context) in_order = false;
}

static void see_queue(void *context) {
  (void)context;
  current = dispatch_get_current_queue();
}

// A serial queue that targets it keeps its order.
static void serial_queue_above(dispatch_workloop_t loop) {
  event done;
  event_init(&done);
  dispatch_queue_t queue = dispatch_queue_create_with_target("serial", NULL, loop);
  for (intptr_t i = 0; i < 1000; i++) dispatch_async_f(queue, (void *)i, take_number);
  dispatch_async_f(queue, &done, event_happens);
  event_wait(&done);
  check_equal(next_number, 1000);
  dispatch_async_f(queue, (void *)1000, take_number);
  dispatch_async_and_wait_f(queue, (void *)1001, take_number);
  check_equal(next_number, 1002);
  check(in_order);
  dispatch_release(queue);
}

int main(void) {
  dispatch_workloop_t loop = dispatch_workloop_create("loop");
  check(loop != NULL);
  check_text(dispatch_queue_get_label(loop), "loop");
  int counter = 0;
  for (int i = 0; i < 1000; i++) dispatch_async_f(loop, &counter, count_up);
  dispatch_async_and_wait_f(loop, &counter, count_up);
  check_equal(count_of(&counter), 1001);
  dispatch_barrier_async_and_wait_f(loop, &counter, count_up);
  check_equal(count_of(&counter), 1002);
  dispatch_async_and_wait_f(loop, NULL, see_queue);
  check(current == loop);

  // The toolchain's library may crash with a queue that targets a workloop.
  if (on_concourse()) serial_queue_above(loop);
  dispatch_release(loop);

  loop = dispatch_workloop_create_inactive(NULL);
  check_text(dispatch_queue_get_label(loop), "");
  dispatch_workloop_set_autorelease_frequency(loop, DISPATCH_AUTORELEASE_FREQUENCY_NEVER);
  dispatch_activate(loop);
  dispatch_async_and_wait_f(loop, &counter, count_up);
  check_equal(counter, 1003);
  dispatch_release(loop);
  return finish();
}
