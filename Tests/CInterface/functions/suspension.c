// Suspending, resuming and activating.
// Statements: S27, S28, S30-S32, S34, S35.

#include "check.h"

static dispatch_queue_t own;

static void suspend_own(void *context) {
  (void)context;
  dispatch_suspend(own);
}

static void resume_queue(void *queue) { dispatch_resume((dispatch_queue_t)queue); }

// There is no event to wait for while nothing may run. So another queue with the same item shows that items of
// this kind had their chance.
static void give_a_chance(void) {
  event chance;
  event_init(&chance);
  for (int i = 0; i < 3; i++) {
    dispatch_async_f(dispatch_get_global_queue(0, 0), &chance, event_happens);
    event_wait(&chance);
  }
}

int main(void) {
  int counter = 0;
  dispatch_queue_t queue = dispatch_queue_create("suspended", NULL);
  for (int i = 0; i < 1000; i++) dispatch_suspend(queue);
  dispatch_async_f(queue, &counter, count_up);
  for (int i = 0; i < 999; i++) dispatch_resume(queue);
  give_a_chance();
  check_equal(count_of(&counter), 0);
  dispatch_resume(queue);
  drain(queue);
  check_equal(count_of(&counter), 1);

  // An item suspends its own queue: it ends, the next one waits.
  own = queue;
  counter = 0;
  dispatch_async_f(queue, NULL, suspend_own);
  dispatch_async_f(queue, &counter, count_up);
  give_a_chance();
  check_equal(count_of(&counter), 0);
  // A synchronous item waits for the resume.
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 1000000), dispatch_get_global_queue(0, 0), queue, resume_queue);
  drain(queue);
  check_equal(count_of(&counter), 1);
  dispatch_release(queue);

  // A queue that targets a suspended queue is held too.
  dispatch_queue_t target = dispatch_queue_create("target", NULL);
  dispatch_queue_t child = dispatch_queue_create_with_target("child", NULL, target);
  counter = 0;
  dispatch_suspend(target);
  dispatch_async_f(child, &counter, count_up);
  give_a_chance();
  check_equal(count_of(&counter), 0);
  dispatch_resume(target);
  drain(child);
  check_equal(count_of(&counter), 1);
  dispatch_release(child);
  dispatch_release(target);

  // Inactive, and suspended on top of that.
  queue = dispatch_queue_create("inactive", DISPATCH_QUEUE_CONCURRENT_INACTIVE);
  counter = 0;
  dispatch_async_f(queue, &counter, count_up);
  give_a_chance();
  check_equal(count_of(&counter), 0);
  dispatch_suspend(queue);
  dispatch_activate(queue);
  dispatch_activate(queue);
  give_a_chance();
  check_equal(count_of(&counter), 0);
  dispatch_resume(queue);
  dispatch_barrier_sync_f(queue, NULL, nothing);
  check_equal(count_of(&counter), 1);
  dispatch_activate(queue);
  dispatch_release(queue);

  // Groups and semaphores ignore suspension, and do not count it.
  dispatch_group_t group = dispatch_group_create();
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(1);
  dispatch_suspend(group);
  dispatch_activate(group);
  dispatch_resume(group);
  dispatch_resume(group);
  dispatch_suspend(semaphore);
  dispatch_activate(semaphore);
  check_equal(dispatch_group_wait(group, DISPATCH_TIME_NOW), 0);
  check_equal(dispatch_semaphore_wait(semaphore, DISPATCH_TIME_NOW), 0);
  dispatch_semaphore_signal(semaphore);
  dispatch_release(group);
  dispatch_release(semaphore);
  return finish();
}
