// Attributes of queues, the classes that queues report, and the global queues.
// Statements: S44-S48, S51.

#include "check.h"

static void attribute_values(void) {
  check(DISPATCH_QUEUE_SERIAL == NULL);
  check(DISPATCH_QUEUE_CONCURRENT != NULL);
  dispatch_queue_attr_t utility = dispatch_queue_attr_make_with_qos_class(DISPATCH_QUEUE_SERIAL, UTILITY, -3);
  check(utility != NULL);
  check(utility == dispatch_queue_attr_make_with_qos_class(DISPATCH_QUEUE_SERIAL, UTILITY, -3));
  check(utility != dispatch_queue_attr_make_with_qos_class(DISPATCH_QUEUE_SERIAL, UTILITY, -4));
  check(utility != dispatch_queue_attr_make_with_qos_class(DISPATCH_QUEUE_CONCURRENT, UTILITY, -3));
  // In any order of the parts.
  dispatch_queue_attr_t one = dispatch_queue_attr_make_initially_inactive(utility);
  dispatch_queue_attr_t other = dispatch_queue_attr_make_with_qos_class(DISPATCH_QUEUE_SERIAL_INACTIVE, UTILITY, -3);
  check(one == other);
  check(one != utility);
  check(dispatch_queue_attr_make_initially_inactive(one) == one);
  check(DISPATCH_QUEUE_CONCURRENT_INACTIVE == DISPATCH_QUEUE_CONCURRENT_INACTIVE);
  check(DISPATCH_QUEUE_CONCURRENT_INACTIVE != DISPATCH_QUEUE_CONCURRENT);
  check(DISPATCH_QUEUE_SERIAL_WITH_AUTORELEASE_POOL != NULL);
  check(DISPATCH_QUEUE_CONCURRENT_WITH_AUTORELEASE_POOL != NULL);
  check(dispatch_queue_attr_make_with_autorelease_frequency(NULL, DISPATCH_AUTORELEASE_FREQUENCY_NEVER) != NULL);
}

static void attribute_refusals(void) {
  check(dispatch_queue_attr_make_with_qos_class(NULL, 0x42, 0) == NULL);
  check(dispatch_queue_attr_make_with_qos_class(NULL, 1, 0) == NULL);
  check(dispatch_queue_attr_make_with_qos_class(NULL, UTILITY, 1) == NULL);
  check(dispatch_queue_attr_make_with_qos_class(NULL, UTILITY, -16) == NULL);
  check(dispatch_queue_attr_make_with_qos_class(NULL, UTILITY, -15) != NULL);
  check(dispatch_queue_attr_make_with_qos_class(NULL, UNSPECIFIED, 0) != NULL);
  check(dispatch_queue_attr_make_with_qos_class(NULL, MAINTENANCE, 0) != NULL);
}

static void classes(void) {
  static const dispatch_qos_class_t all[] = {USER_INTERACTIVE, USER_INITIATED, NORMAL, UTILITY, BACKGROUND};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    dispatch_queue_attr_t attributes = dispatch_queue_attr_make_with_qos_class(NULL, all[i], -(int)i);
    dispatch_queue_t queue = dispatch_queue_create("class", attributes);
    int relative = 77;
    dispatch_qos_class_t expected = all[i];
    // The toolchain's library has no class above user-initiated.
    if (!on_concourse() && expected == USER_INTERACTIVE) expected = USER_INITIATED;
    check_equal(dispatch_queue_get_qos_class(queue, &relative), expected);
    check_equal(relative, -(int)i);
    check_equal(dispatch_queue_get_qos_class(queue, NULL), expected);
    dispatch_release(queue);
  }
  dispatch_queue_t plain = dispatch_queue_create("plain", NULL);
  int relative = 77;
  check_equal(dispatch_queue_get_qos_class(plain, &relative), UNSPECIFIED);
  check_equal(relative, 0);
  dispatch_release(plain);
}

static void global_queues(void) {
  check(dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_HIGH, 0) ==
        dispatch_get_global_queue(USER_INITIATED, 0));
  check(dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0) == dispatch_get_global_queue(NORMAL, 0));
  check(dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_LOW, 0) == dispatch_get_global_queue(UTILITY, 0));
  check(dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_BACKGROUND, 0) ==
        dispatch_get_global_queue(BACKGROUND, 0));
  check(dispatch_get_global_queue(USER_INTERACTIVE, 0) != NULL);
  check(dispatch_get_global_queue(MAINTENANCE, 0) != NULL);
  check(dispatch_get_global_queue(NORMAL, 0) != dispatch_get_global_queue(UTILITY, 0));
  check(dispatch_get_global_queue(NORMAL, 2) != NULL);
  check(dispatch_get_global_queue(NORMAL, 2) != dispatch_get_global_queue(NORMAL, 0));
  check(dispatch_get_global_queue(42, 0) == NULL);
  check(dispatch_get_global_queue(1, 0) == NULL);
  check(dispatch_get_global_queue(NORMAL, 1) == NULL);
  check(dispatch_get_global_queue(NORMAL, 4) == NULL);
  check_equal(dispatch_queue_get_qos_class(dispatch_get_global_queue(UTILITY, 0), NULL), UTILITY);
  check_equal(dispatch_queue_get_qos_class(dispatch_get_global_queue(BACKGROUND, 0), NULL), BACKGROUND);
  check_equal(dispatch_queue_get_qos_class(dispatch_get_global_queue(USER_INITIATED, 0), NULL), USER_INITIATED);
  if (on_concourse()) check_equal(dispatch_queue_get_qos_class(dispatch_get_global_queue(NORMAL, 0), NULL), NORMAL);
}

static void class_floor(void) {
  dispatch_queue_t queue = dispatch_queue_create("floor", DISPATCH_QUEUE_SERIAL_INACTIVE);
  dispatch_set_qos_class_floor(queue, UTILITY, 0);
  dispatch_activate(queue);
  check_equal(dispatch_queue_get_qos_class(queue, NULL), UTILITY);
  drain(queue);
  dispatch_release(queue);
}

int main(void) {
  attribute_values();
  attribute_refusals();
  classes();
  global_queues();
  class_floor();
  return finish();
}
