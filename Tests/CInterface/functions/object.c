// References, contexts and finalizers of all kinds of objects.
// Statements: S5, S12, S24, S34, S101, S135.

#include "check.h"

static event finalized;
static void *finalized_context;
static bool finalized_on_target;
static char key;

static void finalizer(void *context) {
  finalized_context = context;
  finalized_on_target = dispatch_get_specific(&key) == (void *)&key;
  event_happens(&finalized);
}

// Releasing the last reference runs the finalizer on the target.
static void expect_finalizer(const char *kind, dispatch_object_t object, dispatch_queue_t target, void *context) {
  dispatch_set_finalizer_f(object, finalizer);
  if (target) dispatch_set_target_queue(object, target);
  check(dispatch_get_context(object) == NULL);
  dispatch_set_context(object, context);
  check(dispatch_get_context(object) == context);
  dispatch_retain(object);
  dispatch_release(object);
  check(!event_has_happened(&finalized));
  dispatch_release(object);
  event_wait(&finalized);
  check(finalized_context == context);
  check_that(finalized_on_target == (target != NULL), kind, __FILE__, __LINE__);
  finalized_context = NULL;
}

static void finalizers(dispatch_queue_t target) {
  int mark = 0;
  dispatch_queue_t queue = dispatch_queue_create("finalized", DISPATCH_QUEUE_SERIAL);
  expect_finalizer("finalizer of a queue without target", (dispatch_object_t){._dq = queue}, NULL, &mark);

  dispatch_queue_t inner = dispatch_queue_create("finalized", DISPATCH_QUEUE_CONCURRENT);
  expect_finalizer("finalizer of a queue", (dispatch_object_t){._dq = inner}, target, &mark);

  dispatch_group_t group = dispatch_group_create();
  expect_finalizer("finalizer of a group", (dispatch_object_t){._dg = group}, target, &mark);

  dispatch_semaphore_t semaphore = dispatch_semaphore_create(3);
  expect_finalizer("finalizer of a semaphore", (dispatch_object_t){._dsema = semaphore}, target, &mark);

  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, target);
  dispatch_activate(source);
  dispatch_set_finalizer_f(source, finalizer);
  dispatch_set_context(source, &mark);
  dispatch_source_cancel(source);
  dispatch_release(source);
  event_wait(&finalized);
  check(finalized_context == &mark);
  check(finalized_on_target);
}

static void without_context(void) {
  // There is no event to wait for, so the check comes after a later event.
  dispatch_queue_t target = dispatch_queue_create("target", DISPATCH_QUEUE_SERIAL);
  dispatch_queue_t queue = dispatch_queue_create_with_target("none", DISPATCH_QUEUE_SERIAL, target);
  dispatch_set_finalizer_f(queue, finalizer);
  dispatch_release(queue);
  dispatch_queue_t other = dispatch_queue_create_with_target("some", DISPATCH_QUEUE_SERIAL, target);
  int mark = 0;
  dispatch_set_finalizer_f(other, finalizer);
  dispatch_set_context(other, &mark);
  dispatch_release(other);
  event_wait(&finalized);
  drain(target);
  check(!event_has_happened(&finalized));
  dispatch_release(target);
}

static void references_of_items(void) {
  // A queue without references still runs its items, and is then destroyed.
  static event ran;
  event_init(&ran);
  int mark = 0;
  dispatch_queue_t queue = dispatch_queue_create("let go", DISPATCH_QUEUE_SERIAL);
  dispatch_set_finalizer_f(queue, finalizer);
  dispatch_set_context(queue, &mark);
  dispatch_async_f(queue, &ran, event_happens);
  dispatch_barrier_async_f(queue, &ran, event_happens);
  dispatch_release(queue);
  event_wait(&ran);
  event_wait(&ran);
  event_wait(&finalized);
  check(finalized_context == &mark);
}

static void immortals(void) {
  dispatch_object_t objects[] = {
      {._dq = dispatch_get_main_queue()},
      {._dq = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0)},
      {._dq = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_BACKGROUND, 0)},
  };
  for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
    int mark;
    dispatch_retain(objects[i]);
    for (int count = 0; count < 10; count++) dispatch_release(objects[i]);
    dispatch_set_context(objects[i], &mark);
    check(dispatch_get_context(objects[i]) == NULL);
    dispatch_suspend(objects[i]);
    dispatch_suspend(objects[i]);
    dispatch_resume(objects[i]);
    dispatch_resume(objects[i]);
    dispatch_resume(objects[i]);
    dispatch_activate(objects[i]);
  }
  for (int count = 0; count < 10; count++) dispatch_release(dispatch_data_empty);
  check_equal(dispatch_data_get_size(dispatch_data_empty), 0);
  static event ran;
  event_init(&ran);
  dispatch_async_f(dispatch_get_global_queue(0, 0), &ran, event_happens);
  event_wait(&ran);
  check(true);
}

int main(void) {
  event_init(&finalized);
  dispatch_queue_t target = dispatch_queue_create("target", DISPATCH_QUEUE_SERIAL);
  dispatch_queue_set_specific(target, &key, &key, NULL);
  finalizers(target);
  without_context();
  references_of_items();
  immortals();
  dispatch_release(target);
  return finish();
}
