// The queue of the running block. Deprecated: an item may have several queues at once, of which this tells
// the innermost only. For debugging, then, and never to decide whether a lock is held.

#include "listing.h"

#pragma clang diagnostic ignored "-Wdeprecated-declarations"

int main(void) {
  dispatch_queue_t outer = dispatch_queue_create("org.concourse.guide.outer", NULL);
  dispatch_queue_t inner = dispatch_queue_create("org.concourse.guide.inner", NULL);
  __block dispatch_queue_t in_item = NULL;
  __block dispatch_queue_t in_both = NULL;
  __block dispatch_queue_t afterwards = NULL;
  dispatch_sync(outer, ^{
    in_item = dispatch_get_current_queue();
    dispatch_sync(inner, ^{ in_both = dispatch_get_current_queue(); });
    afterwards = dispatch_get_current_queue();
  });
  CHECK(in_item == outer, "an item's queue is not the current one");
  CHECK(in_both == inner, "the innermost queue is not the current one");
  CHECK(afterwards == outer, "the queue is not the current one again");
  CHECK(dispatch_get_current_queue() == dispatch_get_main_queue(),
    "outside of items, the main thread's queue is not the main queue");
  puts("an item's queue, the innermost one, and the main queue outside of items");
  dispatch_release(outer);
  dispatch_release(inner);
  return 0;
}
