// The queues that are always there, one for each urgency.

#include "listing.h"

int main(void) {
  const struct {
    const char *name;
    long priority;
  } urgencies[] = {
    {"high", DISPATCH_QUEUE_PRIORITY_HIGH},
    {"default", DISPATCH_QUEUE_PRIORITY_DEFAULT},
    {"low", DISPATCH_QUEUE_PRIORITY_LOW},
    {"background", DISPATCH_QUEUE_PRIORITY_BACKGROUND},
  };
  dispatch_queue_t queues[4];
  for (int index = 0; index < 4; index++) {
    // The second argument is for future use, and must be 0.
    dispatch_queue_t queue = dispatch_get_global_queue(urgencies[index].priority, 0);
    CHECK(queue != NULL, "there is no queue of %s priority", urgencies[index].name);
    CHECK(queue == dispatch_get_global_queue(urgencies[index].priority, 0),
      "the queue of %s priority is another one the second time", urgencies[index].name);
    for (int other = 0; other < index; other++) {
      CHECK(queue != queues[other], "%s and %s are one queue", urgencies[index].name, urgencies[other].name);
    }
    queues[index] = queue;
    dispatch_semaphore_t ran = dispatch_semaphore_create(0);
    dispatch_async(queue, ^{ dispatch_semaphore_signal(ran); });
    CHECK(dispatch_semaphore_wait(ran, SOON) == 0, "no work ran at %s priority", urgencies[index].name);
    dispatch_release(ran);
    printf("%s: %s\n", urgencies[index].name, dispatch_queue_get_label(queue));
  }
  return 0;
}
