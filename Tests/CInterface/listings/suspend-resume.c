// A queue that holds its items back. Suspensions are counted, and take effect between items.

#include "listing.h"

int main(void) {
  dispatch_queue_t queue = dispatch_queue_create("org.concourse.guide.suspended", NULL);
  dispatch_semaphore_t running = dispatch_semaphore_create(0);
  dispatch_semaphore_t go_on = dispatch_semaphore_create(0);
  dispatch_semaphore_t second_ran = dispatch_semaphore_create(0);
  __block bool first_ended = false;
  __block bool first_had_ended = false;
  dispatch_async(queue, ^{
    dispatch_semaphore_signal(running);
    dispatch_semaphore_wait(go_on, DISPATCH_TIME_FOREVER);
    first_ended = true;
  });
  dispatch_async(queue, ^{
    first_had_ended = first_ended;
    dispatch_semaphore_signal(second_ran);
  });
  CHECK(dispatch_semaphore_wait(running, SOON) == 0, "the first item never began");

  // The item that runs already goes on to its end; the next one does not start.
  dispatch_suspend(queue);
  dispatch_suspend(queue);
  dispatch_semaphore_signal(go_on);
  const int64_t moment = 50 * (int64_t)NSEC_PER_MSEC;
  CHECK(dispatch_semaphore_wait(second_ran, dispatch_time(DISPATCH_TIME_NOW, moment)) != 0,
    "an item started in a queue that was suspended twice");
  dispatch_resume(queue);
  CHECK(dispatch_semaphore_wait(second_ran, dispatch_time(DISPATCH_TIME_NOW, moment)) != 0,
    "an item started in a queue that was suspended once more than resumed");
  dispatch_resume(queue);
  CHECK(dispatch_semaphore_wait(second_ran, SOON) == 0, "no item started after the last resume");
  CHECK(first_had_ended, "the second item did not wait for the first");
  puts("the second item waited for the first, and for two calls of resume");
  dispatch_sync(queue, ^{});
  dispatch_release(queue);
  dispatch_release(running);
  dispatch_release(go_on);
  dispatch_release(second_ran);
  return 0;
}
