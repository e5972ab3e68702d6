// A queue of one's own: one item after the other, first in, first out.

#include "listing.h"
#include <string.h>

enum { COUNT = 1000 };

int main(void) {
  // The label, in reverse-DNS style, is for people who look at the program from outside. No attributes.
  dispatch_queue_t queue = dispatch_queue_create("org.concourse.guide.serial", NULL);
  const char *label = dispatch_queue_get_label(queue);
  CHECK(strcmp(label, "org.concourse.guide.serial") == 0, "the label is '%s'", label);
  int *order = calloc(COUNT, sizeof *order);
  __block int ran = 0;
  for (int number = 0; number < COUNT; number++) {
    // Nothing else touches `order` and `ran` meanwhile: the queue is their lock.
    dispatch_async(queue, ^{ order[ran++] = number; });
  }
  dispatch_sync(queue, ^{});
  CHECK(ran == COUNT, "%d of %d items ran", ran, COUNT);
  for (int place = 0; place < COUNT; place++) {
    CHECK(order[place] == place, "item %d ran in place %d", order[place], place);
  }
  printf("%d items of %s ran in order\n", ran, label);
  free(order);
  dispatch_release(queue);
  return 0;
}
