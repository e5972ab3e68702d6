// Groups, sources and the type-generic names, with blocks.
// Statements: S64-S67, S98, S99, S106.

#include "check.h"

#include <Block.h>

static void groups(dispatch_queue_t queue) {
  dispatch_group_t group = dispatch_group_create();
  __block int sum = 0;
  for (int i = 1; i <= 100; i++) {
    dispatch_group_async(group, queue, ^{
      sum += i;
    });
  }
  check_equal(dispatch_wait(group, DISPATCH_TIME_FOREVER), 0);
  check_equal(sum, 5050);
  dispatch_semaphore_t told = dispatch_semaphore_create(0);
  dispatch_group_enter(group);
  dispatch_group_notify(group, queue, ^{
    dispatch_semaphore_signal(told);
  });
  dispatch_notify(group, queue, ^{
    dispatch_semaphore_signal(told);
  });
  check(dispatch_wait(told, DISPATCH_TIME_NOW) != 0);
  dispatch_group_leave(group);
  check_equal(dispatch_wait(told, DISPATCH_TIME_FOREVER), 0);
  check_equal(dispatch_wait(told, DISPATCH_TIME_FOREVER), 0);
  dispatch_release(told);
  dispatch_release(group);
}

static void sources(dispatch_queue_t queue) {
  dispatch_semaphore_t handled = dispatch_semaphore_create(0), cancelled = dispatch_semaphore_create(0);
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  __block uintptr_t total = 0;
  __block int registrations = 0;
  dispatch_source_set_event_handler(source, ^{
    total += dispatch_source_get_data(source);
    dispatch_semaphore_signal(handled);
  });
  dispatch_source_set_registration_handler(source, ^{
    registrations++;
  });
  dispatch_source_set_cancel_handler(source, ^{
    dispatch_semaphore_signal(cancelled);
  });
  dispatch_activate(source);
  dispatch_source_merge_data(source, 3);
  dispatch_semaphore_wait(handled, DISPATCH_TIME_FOREVER);
  dispatch_source_merge_data(source, 4);
  dispatch_semaphore_wait(handled, DISPATCH_TIME_FOREVER);
  check_equal(total, 7);
  check_equal(registrations, 1);
  check_equal(dispatch_testcancel(source), 0);
  dispatch_cancel(source);
  check(dispatch_testcancel(source) != 0);
  dispatch_semaphore_wait(cancelled, DISPATCH_TIME_FOREVER);
  dispatch_release(source);

  source = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0, queue);
  dispatch_source_set_timer(source, DISPATCH_TIME_NOW, 1000000, 0);
  __block int fires = 0;
  dispatch_source_set_event_handler(source, ^{
    if (++fires == 3) dispatch_source_cancel(source);
  });
  dispatch_source_set_cancel_handler(source, ^{
    dispatch_semaphore_signal(cancelled);
  });
  dispatch_resume(source);
  dispatch_semaphore_wait(cancelled, DISPATCH_TIME_FOREVER);
  check_equal(fires, 3);
  dispatch_release(source);

  // Each form of a handler replaces the other.
  source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_OR, 0, 0, queue);
  static int function_calls;
  dispatch_set_context(source, &function_calls);
  __block int block_calls = 0;
  dispatch_source_set_event_handler(source, ^{
    block_calls++;
  });
  dispatch_source_set_event_handler_f(source, count_up);
  dispatch_source_set_cancel_handler_f(source, nothing);
  dispatch_source_set_cancel_handler(source, ^{
    dispatch_semaphore_signal(cancelled);
  });
  dispatch_activate(source);
  dispatch_source_merge_data(source, 1);
  while (count_of(&function_calls) == 0) drain(queue);
  check_equal(block_calls, 0);
  dispatch_source_cancel(source);
  dispatch_semaphore_wait(cancelled, DISPATCH_TIME_FOREVER);
  dispatch_release(source);
  dispatch_release(handled);
  dispatch_release(cancelled);
}

int main(void) {
  dispatch_queue_t queue = dispatch_queue_create("queue", NULL);
  groups(queue);
  sources(queue);
  dispatch_release(queue);
  return finish();
}
