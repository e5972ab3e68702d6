// Misuse that ends the process.
// Statements: S8, S12, S23, S29, S33, S37, S47, S51, S63, S73, S75, S91, S107, S138-S141.

#include "check.h"

#include <setjmp.h>

static dispatch_queue_t outer_queue, inner_queue;

static void sync_outer(void *context) { dispatch_sync_f(outer_queue, context, nothing); }
static void sync_inner(void *context) { dispatch_sync_f(inner_queue, context, sync_outer); }
static void barrier_outer(void *context) { dispatch_barrier_sync_f(outer_queue, context, sync_outer); }

static dispatch_queue_t made(const char *label, dispatch_queue_attr_t attributes) {
  return dispatch_queue_create(label, attributes);
}

static void over_release(void) {
  dispatch_queue_t queue = made("released", NULL);
  dispatch_release(queue);
  dispatch_release(queue);
  drain(queue);
}
// The item uses the queue, and would continue with memory that the second release freed.
static void over_release_in_use(void) {
  dispatch_queue_t queue = made("in use", NULL);
  static event started, never;
  event_init(&started);
  event_init(&never);
  dispatch_async_f(queue, &started, event_happens);
  dispatch_async_f(queue, &never, wait_in_item);
  event_wait(&started);
  dispatch_release(queue);
  dispatch_release(queue);
  wait_for_death();
}
static void resume_active(void) { dispatch_resume(made("active", NULL)); }
static void resume_inactive(void) { dispatch_resume(made("inactive", DISPATCH_QUEUE_SERIAL_INACTIVE)); }
static void release_suspended(void) {
  dispatch_queue_t queue = made("suspended", NULL);
  dispatch_suspend(queue);
  dispatch_release(queue);
  wait_for_death();
}
static void release_inactive(void) {
  dispatch_release(made("inactive", DISPATCH_QUEUE_SERIAL_INACTIVE));
  wait_for_death();
}
static void release_inactive_source(void) {
  dispatch_release(dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, NULL));
  wait_for_death();
}
static void resume_source_twice(void) {
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, NULL);
  dispatch_resume(source);
  dispatch_resume(source);
}
static void sync_on_itself(void) {
  outer_queue = made("itself", NULL);
  dispatch_sync_f(outer_queue, NULL, sync_outer);
}
static void sync_on_itself_from_async(void) {
  outer_queue = made("itself", NULL);
  dispatch_async_f(outer_queue, NULL, sync_outer);
  wait_for_death();
}
static void sync_in_a_circle(void) {
  outer_queue = made("outer", NULL);
  inner_queue = made("inner", NULL);
  dispatch_sync_f(outer_queue, NULL, sync_inner);
}
static void sync_in_a_barrier(void) {
  outer_queue = made("concurrent", DISPATCH_QUEUE_CONCURRENT);
  barrier_outer(NULL);
}
static void sync_on_target(void) {
  outer_queue = made("target", NULL);
  dispatch_sync_f(dispatch_queue_create_with_target("child", NULL, outer_queue), NULL, sync_outer);
}
static void wait_on_itself(void *context) { dispatch_async_and_wait_f(outer_queue, context, nothing); }
static void async_and_wait_on_itself(void) {
  outer_queue = made("itself", NULL);
  dispatch_sync_f(outer_queue, NULL, wait_on_itself);
}
static void apply_inner(void *context, size_t i) {
  (void)context;
  (void)i;
}
static void apply_in_item(void *context) { dispatch_apply_f(10, outer_queue, context, apply_inner); }
static void apply_on_itself(void) {
  outer_queue = made("itself", NULL);
  dispatch_sync_f(outer_queue, NULL, apply_in_item);
}
static void retarget_for_good(void) {
  dispatch_queue_t queue = dispatch_queue_create_with_target("for good", NULL, made("target", NULL));
  dispatch_set_target_queue(queue, made("other", NULL));
}
static void retarget_after_activation(void) {
  dispatch_queue_t queue = made("activated", DISPATCH_QUEUE_SERIAL_INACTIVE);
  dispatch_activate(queue);
  dispatch_set_target_queue(queue, made("other", NULL));
}
static void floor_after_activation(void) { dispatch_set_qos_class_floor(made("active", NULL), UTILITY, 0); }
static void no_attribute(void) {
  long garbage[64] = {0};
  (void)!dispatch_queue_create("bad", (dispatch_queue_attr_t)(void *)garbage);
}
static void leave_empty(void) { dispatch_group_leave(dispatch_group_create()); }
static void semaphore_in_use(void) {
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(1);
  dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER);
  dispatch_release(semaphore);
  wait_for_death();
}
static dispatch_once_t recursive;
static void recurse(void *context) { dispatch_once_f(&recursive, context, recurse); }
static void once_in_itself(void) { recurse(NULL); }
static void assert_elsewhere(void) { dispatch_assert_queue(made("elsewhere", NULL)); }
static void assert_barrier(void *context) { dispatch_assert_queue_barrier((dispatch_queue_t)context); }
static void assert_shared(void) {
  dispatch_queue_t queue = made("shared", DISPATCH_QUEUE_CONCURRENT);
  dispatch_sync_f(queue, queue, assert_barrier);
}
static void assert_not(void *context) { dispatch_assert_queue_not((dispatch_queue_t)context); }
static void assert_not_here(void) {
  dispatch_queue_t queue = made("here", NULL);
  dispatch_sync_f(queue, queue, assert_not);
}
static void assert_not_main(void) { dispatch_assert_queue_not(dispatch_get_main_queue()); }
static void sync_main_on_main(void) { dispatch_sync_f(dispatch_get_main_queue(), NULL, nothing); }
static void *call_main(void *context) {
  (void)context;
  dispatch_main();
}
static void main_on_another_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, call_main, NULL);
  wait_for_death();
}
static void main_in_main_item(void *context) {
  (void)context;
  dispatch_main();
}
static void main_twice(void) {
  dispatch_async_f(dispatch_get_main_queue(), NULL, main_in_main_item);
  dispatch_main();
}
static void merge_into_timer(void) {
  dispatch_source_merge_data(dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0, NULL), 1);
}
static void set_timer_of_data(void) {
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, NULL);
  dispatch_source_set_timer(source, DISPATCH_TIME_NOW, 1, 0);
}
static void sync_on_workloop(void) { dispatch_sync_f(dispatch_workloop_create("loop"), NULL, nothing); }
static void async_on_inactive_workloop(void) {
  dispatch_async_f(dispatch_workloop_create_inactive("loop"), NULL, nothing);
  wait_for_death();
}
static void null_function(void) {
  dispatch_function_t volatile none = NULL;
  dispatch_sync_f(made("null", NULL), NULL, none);
}
static void null_queue(void) {
  dispatch_queue_t volatile none = NULL;
  dispatch_async_f(none, NULL, nothing);
  wait_for_death();
}
static void release(void *queue) { dispatch_release((dispatch_queue_t)queue); }
static void release_in_item(void) {
  dispatch_queue_t queue = made("released", NULL);
  dispatch_sync_f(queue, queue, release);
}
static void release_in_reader(void) {
  dispatch_queue_t queue = made("released", DISPATCH_QUEUE_CONCURRENT);
  dispatch_sync_f(queue, queue, release);
}
static void jump(void *place) { longjmp(*(jmp_buf *)place, 1); }
static void *leave_item(void *queue) {
  jmp_buf place;
  if (setjmp(place) == 0) dispatch_sync_f((dispatch_queue_t)queue, &place, jump);
  return NULL;
}
static void release_after_jump(void) {
  dispatch_queue_t queue = made("left", NULL);
  leave_item(queue);
  dispatch_release(queue);
}
static void leave_item_by_jump(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, leave_item, made("left", NULL));
  pthread_join(thread, NULL);
}

int main(void) {
  dies(over_release);
  dies(over_release_in_use);
  dies(resume_active);
  dies(resume_inactive);
  dies(release_suspended);
  dies(release_inactive);
  dies(release_inactive_source);
  dies(resume_source_twice);
  dies(sync_on_itself);
  dies(sync_on_itself_from_async);
  dies(sync_in_a_circle);
  dies(sync_in_a_barrier);
  dies(sync_on_target);
  dies(async_and_wait_on_itself);
  dies(apply_on_itself);
  dies(retarget_for_good);
  dies(retarget_after_activation);
  dies(floor_after_activation);
  dies(no_attribute);
  dies(leave_empty);
  dies(semaphore_in_use);
  dies(once_in_itself);
  dies(assert_elsewhere);
  dies(assert_shared);
  dies(assert_not_here);
  dies(assert_not_main);
  dies(sync_main_on_main);
  // With the toolchain's library another thread may call it, and nothing is served.
  if (on_concourse()) dies(main_on_another_thread);
  dies(release_in_item);
  dies(release_in_reader);
  dies(release_after_jump);
  // Detected when the thread ends; not by the toolchain's library.
  if (on_concourse()) dies_saying(leave_item_by_jump, "an item of queue \"left\" never returned: ");
  dies(main_twice);
  dies(merge_into_timer);
  dies(set_timer_of_data);
  dies(sync_on_workloop);
  dies(async_on_inactive_workloop);
  dies(null_function);
  dies(null_queue);
  return finish();
}
