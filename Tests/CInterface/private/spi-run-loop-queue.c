// Queues served item by item: waiters, queues that target them, and items left in them.
// Statements: S42.

#include "check.h"

static dispatch_queue_t queue;
static event said, ready;
static int counter;
static bool nested_had_more;

static void *wait_for_item(void *target) {
  event_happens(&ready);
  dispatch_sync_f((dispatch_queue_t)target, &counter, count_up);
  event_happens(&said);
  return NULL;
}

// Serves until the thread that waits for its item has returned.
static void serve_waiter(dispatch_queue_t target) {
  pthread_t thread;
  counter = 0;
  pthread_create(&thread, NULL, wait_for_item, target);
  event_wait(&ready);
  while (!event_has_happened(&said)) (void)_dispatch_runloop_root_queue_perform_4CF(queue);
  pthread_join(thread, NULL);
  check_equal(counter, 1);
}

static void perform_inside(void *context) {
  (void)context;
  dispatch_assert_queue(queue);
  nested_had_more = _dispatch_runloop_root_queue_perform_4CF(queue);
}

static void submit_again(void *context) { dispatch_async_f(queue, context, count_up); }

int main(void) {
  event_init(&said);
  event_init(&ready);
  check(_dispatch_runloop_root_queue_create_4CF("flags", 1) == NULL);
  queue = _dispatch_runloop_root_queue_create_4CF(NULL, 0);
  check_text(dispatch_queue_get_label(queue), "runloop-queue");

  // An item may serve other items.
  dispatch_async_f(queue, NULL, perform_inside);
  dispatch_async_f(queue, &counter, count_up);
  dispatch_async_f(queue, &counter, count_up);
  check(_dispatch_runloop_root_queue_perform_4CF(queue));
  check(nested_had_more);
  check_equal(counter, 1);
  check(!_dispatch_runloop_root_queue_perform_4CF(queue));
  check_equal(counter, 2);

  // Queues that target it run here too.
  dispatch_queue_t above = dispatch_queue_create_with_target("above", NULL, queue);
  counter = 0;
  for (int i = 0; i < 3; i++) dispatch_async_f(above, &counter, count_up);
  check_equal(counter, 0);
  while (_dispatch_runloop_root_queue_perform_4CF(queue)) {
  }
  check_equal(counter, 3);

  // With the toolchain's library no thread can wait for such a queue, resuming it loses items, and it misses items that
  // an item has added.
  if (on_concourse()) {
    serve_waiter(queue);
    serve_waiter(above);
    counter = 0;
    dispatch_suspend(queue);
    dispatch_async_f(queue, &counter, submit_again);
    check(!_dispatch_runloop_root_queue_perform_4CF(queue));
    check_equal(counter, 0);
    dispatch_resume(queue);
    check(_dispatch_runloop_root_queue_perform_4CF(queue));
    check(!_dispatch_runloop_root_queue_perform_4CF(queue));
    check_equal(counter, 1);
  }
  dispatch_release(above);

  // Items left in it run somewhere.
  dispatch_async_f(queue, &said, event_happens);
  dispatch_release(queue);
  event_wait(&said);
  return finish();
}
