// Work in the background, and a block of the caller's with the answer, on the caller's own queue.

#include "listing.h"

static int place;

// The average of `count` numbers, at least one, as an argument of `completion`, on `queue`.
static void average_async(
  const int *numbers, size_t count, dispatch_queue_t queue, void (^completion)(double average)
) {
  // The caller may let go of the queue at once: it is needed until the answer is there.
  dispatch_retain(queue);
  dispatch_async(dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0), ^{
    double sum = 0;
    for (size_t index = 0; index < count; index++) sum += numbers[index];
    dispatch_async(queue, ^{ completion(sum / (double)count); });
    dispatch_release(queue);
  });
}

int main(void) {
  static const int numbers[] = {1, 2, 3, 4};
  dispatch_semaphore_t told = dispatch_semaphore_create(0);
  __block double answer = 0;
  __block bool is_here = false;
  dispatch_queue_t queue = dispatch_queue_create("org.concourse.guide.caller", NULL);
  dispatch_queue_set_specific(queue, &place, &place, NULL);
  average_async(numbers, 4, queue, ^(double average) {
    answer = average;
    is_here = dispatch_get_specific(&place) == &place;
    dispatch_semaphore_signal(told);
  });
  dispatch_release(queue);
  CHECK(dispatch_semaphore_wait(told, SOON) == 0, "no answer came");
  CHECK(answer == 2.5, "the average was %g instead of 2.5", answer);
  CHECK(is_here, "the answer came on another queue");
  printf("the average is %g\n", answer);
  dispatch_release(told);
  return 0;
}
