// More misuse of functions without a public header.
// Statements: S51, S105.

#include "check.h"

static dispatch_source_t source(void) { return dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, NULL); }

static void floor_of_active_queue(void) { dispatch_set_qos_class_floor(dispatch_queue_create("a", NULL), UTILITY, 0); }
static void floor_of_group(void) { dispatch_set_qos_class_floor((dispatch_object_t){._dg = dispatch_group_create()}, UTILITY, 0); }
static void floor_of_active_source(void) {
  dispatch_source_t s = source();
  dispatch_activate(s);
  dispatch_set_qos_class_floor(s, UTILITY, 0);
}
static void fallback_of_active_queue(void) { dispatch_set_qos_class_fallback(dispatch_queue_create("a", NULL), UTILITY); }
static void class_of_active_workloop(void) { dispatch_workloop_set_qos_class(dispatch_workloop_create("a"), UTILITY, 0); }
static void too_much_processor(void) { dispatch_workloop_set_cpupercent(dispatch_workloop_create_inactive("a"), 150, 100); }
static void submit_to_inactive_workloop(void) { dispatch_async_f(dispatch_workloop_create_inactive("a"), NULL, nothing); }
static void submit_above_inactive_workloop(void) {
  dispatch_async_f(dispatch_queue_create_with_target("b", NULL, dispatch_workloop_create_inactive("a")), NULL, nothing);
}
static void release_inactive_workloop(void) {
  dispatch_release(dispatch_workloop_create_inactive("a"));
  wait_for_death();
}
static void mandatory_when_active(void) {
  dispatch_source_t s = source();
  dispatch_activate(s);
  dispatch_source_set_mandatory_cancel_handler_f(s, nothing);
  wait_for_death();
}
static void mandatory_registration(void) {
  dispatch_source_t s = source();
  dispatch_source_set_mandatory_cancel_handler_f(s, nothing);
  dispatch_activate(s);
  dispatch_source_set_registration_handler_f(s, nothing);
}
static void mandatory_target(void) {
  dispatch_source_t s = source();
  dispatch_source_set_mandatory_cancel_handler_f(s, nothing);
  dispatch_activate(s);
  dispatch_set_target_queue(s, dispatch_queue_create("a", NULL));
}
static void wait_when_suspended(void) {
  dispatch_source_t s = source();
  dispatch_activate(s);
  dispatch_suspend(s);
  dispatch_source_cancel_and_wait(s);
}
static void cancel_here(void *s) { dispatch_source_cancel_and_wait((dispatch_source_t)s); }
static void wait_in_handler(void) {
  dispatch_source_t s = source();
  dispatch_set_context(s, s);
  dispatch_source_set_event_handler_f(s, cancel_here);
  dispatch_activate(s);
  dispatch_source_merge_data(s, 1);
  wait_for_death();
}
static void wait_in_registration_handler(void) {
  dispatch_source_t s = source();
  dispatch_set_context(s, s);
  dispatch_source_set_registration_handler_f(s, cancel_here);
  dispatch_activate(s);
  wait_for_death();
}
static void perform_serial(void) { (void)_dispatch_runloop_root_queue_perform_4CF(dispatch_queue_create("a", NULL)); }
static void sync_here(void *queue) { dispatch_sync_f((dispatch_queue_t)queue, NULL, nothing); }
static void wait_while_performed(void) {
  dispatch_queue_t queue = _dispatch_runloop_root_queue_create_4CF("a", 0);
  dispatch_async_f(queue, queue, sync_here);
  (void)_dispatch_runloop_root_queue_perform_4CF(queue);
}
static void thread_when_forbidden(void) {
  _dispatch_prohibit_transition_to_multithreaded(true);
  dispatch_sync_f(dispatch_queue_create("a", NULL), NULL, nothing);
  dispatch_async_f(dispatch_get_global_queue(0, 0), NULL, nothing);
  wait_for_death();
}
static void forbid_threads_too_late(void) {
  event ran;
  event_init(&ran);
  dispatch_async_f(dispatch_get_global_queue(0, 0), &ran, event_happens);
  event_wait(&ran);
  _dispatch_prohibit_transition_to_multithreaded(true);
}

int main(void) {
  dies(floor_of_active_queue);
  dies(floor_of_group);
  dies(floor_of_active_source);
  dies(fallback_of_active_queue);
  dies(class_of_active_workloop);
  dies(too_much_processor);
  dies(submit_to_inactive_workloop);
  dies(submit_above_inactive_workloop);
  dies(release_inactive_workloop);
  dies(mandatory_when_active);
  dies(mandatory_registration);
  dies(mandatory_target);
  dies(wait_when_suspended);
  dies(wait_in_handler);
  dies(wait_in_registration_handler);
  dies(perform_serial);
  dies(wait_while_performed);
  dies(thread_when_forbidden);
  dies(forbid_threads_too_late);
  return finish();
}
