// Queues and workloops: exported functions without a public header.
// Statements: S14, S46.

#include "check.h"

static int inside, most;
static event enough, go_on;

static void stay(void *limit) {
  int now = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
  if (now > most) most = now;
  if (now == (int)(intptr_t)limit) event_happens(&enough);
  event_wait(&go_on);
  __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

static void width(void) {
  dispatch_queue_t queue = dispatch_queue_create("width", DISPATCH_QUEUE_CONCURRENT);
  dispatch_queue_set_width(queue, 2);
  dispatch_barrier_sync_f(queue, NULL, nothing);
  for (int i = 0; i < 10; i++) dispatch_async_f(queue, (void *)2, stay);
  event_wait(&enough);
  for (int i = 0; i < 10; i++) event_happens(&go_on);
  dispatch_barrier_sync_f(queue, NULL, nothing);
  check_equal(most, 2);
  dispatch_queue_set_width(queue, DISPATCH_QUEUE_WIDTH_MAX_LOGICAL_CPUS);
  dispatch_queue_set_width(queue, DISPATCH_QUEUE_WIDTH_MAX_PHYSICAL_CPUS);
  dispatch_queue_set_width(queue, DISPATCH_QUEUE_WIDTH_ACTIVE_CPUS);
  dispatch_barrier_sync_f(queue, NULL, nothing);
  dispatch_release(queue);
}

static void attributes(void) {
  dispatch_queue_attr_t overcommit = dispatch_queue_attr_make_with_overcommit(NULL, true);
  check(overcommit != NULL);
  check(overcommit == dispatch_queue_attr_make_with_overcommit(NULL, true));
  check(overcommit != dispatch_queue_attr_make_with_overcommit(NULL, false));
  dispatch_queue_t queue = dispatch_queue_create("overcommit", overcommit);
  drain(queue);
  dispatch_release(queue);
  // A queue without a label.
  queue = dispatch_queue_create(NULL, NULL);
  static const char label[] = "not copied";
  dispatch_queue_set_label_nocopy(queue, label);
  check(dispatch_queue_get_label(queue) == label);
  dispatch_release(queue);

  queue = dispatch_queue_create("class", DISPATCH_QUEUE_SERIAL_INACTIVE);
  dispatch_set_qos_class(queue, UTILITY, -2);
  dispatch_activate(queue);
  int relative = 0;
  check_equal(dispatch_queue_get_qos_class(queue, &relative), UTILITY);
  check_equal(relative, -2);
  drain(queue);
  dispatch_release(queue);
  queue = dispatch_queue_create("fallback", DISPATCH_QUEUE_SERIAL_INACTIVE);
  dispatch_set_qos_class_fallback(queue, UTILITY);
  dispatch_activate(queue);
  drain(queue);
  dispatch_release(queue);

  int counter = 0;
  queue = dispatch_queue_create("enforced", NULL);
  dispatch_async_enforce_qos_class_f(queue, &counter, count_up);
  drain(queue);
  check_equal(counter, 1);
  dispatch_release(queue);
  // Ours reports that debuggers find nothing there.
  check_equal(dispatch_queue_offsets.dqo_version, on_concourse() ? 0 : 6);
}

// What the thread sanitizer reads of queues and sources.
enum { WIDTH = 6, WIDTH_SIZE, TARGET = 12, TARGET_SIZE };
static uint16_t width_of(dispatch_queue_t queue) {
  return *(const uint16_t *)((const char *)queue + dispatch_queue_offsets.dqo_parts[WIDTH]);
}
static const void *target_of(const void *object) {
  return *(const void *const *)((const char *)object + dispatch_queue_offsets.dqo_parts[TARGET]);
}
static void fields_for_the_thread_sanitizer(void) {
  if (!on_concourse()) return;
  check_equal(dispatch_queue_offsets.dqo_parts[WIDTH_SIZE], 2);
  check_equal(dispatch_queue_offsets.dqo_parts[TARGET_SIZE], 8);
  dispatch_queue_t global = dispatch_get_global_queue(0, 0), last = dispatch_get_main_queue();
  dispatch_queue_t serial = dispatch_queue_create("serial", NULL);
  dispatch_queue_t concurrent = dispatch_queue_create("concurrent", DISPATCH_QUEUE_CONCURRENT);
  dispatch_queue_t inner = dispatch_queue_create_with_target("inner", NULL, serial);
  dispatch_queue_t on_main = dispatch_queue_create_with_target("on main", NULL, last);
  dispatch_workloop_t workloop = dispatch_workloop_create("workloop");
  check_equal(width_of(serial), 1);
  check_equal(width_of((dispatch_queue_t)workloop), 1);
  check_equal(width_of(last), 1);
  check(width_of(concurrent) > 1 && width_of(global) > 1);
  check(target_of(serial) == global && target_of(inner) == serial && !target_of(global));
  // The queue behind the symbol ends the hierarchy.
  check(target_of(on_main) == target_of(last) && width_of((dispatch_queue_t)target_of(last)) == 1 && !target_of(target_of(last)));
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, serial);
  check(target_of(source) == serial);
  dispatch_set_target_queue(source, inner);
  check(target_of(source) == inner);
  dispatch_activate(source);
  dispatch_source_cancel(source);
  dispatch_release(source);
  dispatch_release(workloop);
  dispatch_release(on_main);
  dispatch_release(inner);
  dispatch_release(concurrent);
  dispatch_release(serial);
}

static dispatch_workloop_t loop;
static void in_loop(void *context) {
  (void)context;
  // The toolchain's library may crash here.
  if (on_concourse()) {
    dispatch_workloop_t current = dispatch_workloop_copy_current();
    check(current == loop);
    dispatch_release(current);
    check(dispatch_workloop_is_current(loop));
  }
  (void)_dispatch_workloop_should_yield_4NW();
}

static void workloops(void) {
  if (on_concourse()) check(dispatch_workloop_copy_current() == NULL);
  loop = dispatch_workloop_create_inactive("configured");
  dispatch_workloop_set_qos_class(loop, UTILITY, 0);
  dispatch_workloop_set_qos_class_floor(loop, UTILITY, 0, 0);
  dispatch_workloop_set_cpupercent(loop, 50, 100);
  dispatch_activate(loop);
  if (on_concourse()) check(!dispatch_workloop_is_current(loop));
  dispatch_async_and_wait_f(loop, NULL, in_loop);
  dispatch_release(loop);
}

int main(void) {
  event_init(&enough);
  event_init(&go_on);
  width();
  attributes();
  fields_for_the_thread_sanitizer();
  workloops();
  return finish();
}
