// A block that is run at once writes to a variable of its parent's scope.

#include "listing.h"

int main(void) {
  const int numbers[] = {3, 1, 4, 1, 5, 9, 2, 6};
  // Blocks cannot capture an array, but its address.
  const int *start = numbers;
  const size_t count = sizeof numbers / sizeof numbers[0];
  __block int largest = numbers[0];
  dispatch_queue_t queue = dispatch_queue_create("org.concourse.guide.maximum", NULL);
  dispatch_sync(queue, ^{
    for (size_t index = 0; index < count; index++) {
      if (start[index] > largest) largest = start[index];
    }
  });
  dispatch_release(queue);
  printf("the largest is %d\n", largest);
  CHECK(largest == 9, "found %d instead of 9", largest);
  return 0;
}
