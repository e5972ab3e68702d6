// What returns at once, and what waits for its turn, on the same queue.

#include "listing.h"

int main(void) {
  dispatch_queue_t queue = dispatch_queue_create("org.concourse.guide.custom", NULL);
  __block bool has_run = false;
  __block bool had_run = false;
  dispatch_async(queue, ^{
    puts("asynchronous item");
    has_run = true;
  });
  puts("the submitting thread goes on");
  dispatch_sync(queue, ^{
    puts("synchronous item");
    had_run = has_run;
  });
  CHECK(had_run, "the synchronous item overtook the asynchronous one");
  dispatch_release(queue);
  return 0;
}
