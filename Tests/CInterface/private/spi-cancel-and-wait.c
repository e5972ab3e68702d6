// Cancelling and waiting: the handlers have ended, and the descriptor may be closed.
// Statements: S105.

#include "check.h"

#include <sched.h>

static int running, overlaps, calls;

static void handle(void *context) {
  (void)context;
  __atomic_store_n(&running, 1, __ATOMIC_SEQ_CST);
  sched_yield();
  calls++;
  __atomic_store_n(&running, 0, __ATOMIC_SEQ_CST);
}

static void cancel_here(void *source) { dispatch_source_cancel_and_wait((dispatch_source_t)source); }

int main(void) {
  dispatch_queue_t queue = dispatch_queue_create("handlers", NULL);
  // With a descriptor that is always ready, so that handlers are called all the time.
  for (int round = 0; round < 200; round++) {
    int ends[2];
    check_equal(pipe(ends), 0);
    check_equal(write(ends[1], "x", 1), 1);
    dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_READ, (uintptr_t)ends[0], 0, queue);
    dispatch_source_set_event_handler_f(source, handle);
    dispatch_activate(source);
    if (round % 2) sched_yield();
    dispatch_source_cancel_and_wait(source);
    if (__atomic_load_n(&running, __ATOMIC_SEQ_CST)) overlaps++;
    int calls_then = calls;
    close(ends[0]);
    close(ends[1]);
    drain(queue);
    check_equal(calls, calls_then);
    dispatch_release(source);
  }
  check_equal(overlaps, 0);

  // Again, after an ordinary cancellation, never activated, and from an item of its queue.
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  dispatch_activate(source);
  dispatch_source_cancel(source);
  dispatch_source_cancel_and_wait(source);
  dispatch_source_cancel_and_wait(source);
  dispatch_release(source);
  source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  dispatch_source_cancel_and_wait(source);
  check(dispatch_source_testcancel(source) != 0);
  dispatch_release(source);
  source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  dispatch_activate(source);
  dispatch_sync_f(queue, source, cancel_here);
  dispatch_release(source);
  // No call waits for events held by a suspended queue.
  source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  dispatch_source_set_event_handler_f(source, handle);
  dispatch_activate(source);
  dispatch_suspend(queue);
  dispatch_source_merge_data(source, 1);
  dispatch_source_cancel_and_wait(source);
  int calls_then = calls;
  dispatch_resume(queue);
  drain(queue);
  check_equal(calls, calls_then);
  dispatch_release(source);
  dispatch_release(queue);
  return finish();
}
