// QoS classes of inactive objects.
// Statements: S46, S51.

#include "check.h"

static void expect(dispatch_queue_t queue, unsigned class, int relative) {
  int got = 99;
  check_equal(dispatch_queue_get_qos_class(queue, &got), class);
  check_equal(got, relative);
}

static dispatch_queue_t inactive(void) { return dispatch_queue_create("inactive", DISPATCH_QUEUE_SERIAL_INACTIVE); }

static void end(dispatch_queue_t queue) {
  dispatch_activate(queue);
  drain(queue);
  dispatch_release(queue);
}

int main(void) {
  dispatch_queue_t queue = inactive();
  dispatch_set_qos_class_floor(queue, UTILITY, -3);
  expect(queue, UTILITY, -3);
  dispatch_activate(queue);
  expect(queue, UTILITY, -3);
  end(queue);

  queue = inactive();
  dispatch_set_qos_class(queue, UTILITY, -3);
  dispatch_set_qos_class_floor(queue, USER_INITIATED, -1);
  expect(queue, USER_INITIATED, -1);
  end(queue);

  queue = inactive();
  dispatch_set_qos_class_floor(queue, USER_INITIATED, -1);
  dispatch_set_qos_class(queue, UTILITY, -3);
  expect(queue, UTILITY, -3);
  end(queue);

  queue = inactive();
  dispatch_set_qos_class_floor(queue, UTILITY, 0);
  dispatch_set_qos_class_floor(queue, UNSPECIFIED, 0);
  expect(queue, UNSPECIFIED, 0);
  end(queue);

  queue = inactive();
  dispatch_set_qos_class_fallback(queue, UTILITY);
  expect(queue, UNSPECIFIED, 0);
  end(queue);

  event handled;
  event_init(&handled);
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, NULL);
  dispatch_set_qos_class_floor(source, UTILITY, 0);
  dispatch_set_context(source, &handled);
  dispatch_source_set_event_handler_f(source, event_happens);
  dispatch_activate(source);
  dispatch_source_merge_data(source, 1);
  event_wait(&handled);
  dispatch_source_cancel_and_wait(source);
  dispatch_release(source);
  return finish();
}
