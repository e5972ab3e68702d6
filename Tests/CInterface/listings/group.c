// Several tasks, other work meanwhile, and one wait for all of them.

#include "listing.h"

enum { COUNT = 20 };

int main(void) {
  dispatch_queue_t queue = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
  dispatch_group_t group = dispatch_group_create();
  int *squares = calloc(COUNT, sizeof *squares);
  for (int number = 0; number < COUNT; number++) {
    dispatch_group_async(group, queue, ^{ squares[number] = number * number; });
  }
  puts("meanwhile, something else");
  CHECK(dispatch_group_wait(group, SOON) == 0, "the group never became empty");
  for (int number = 0; number < COUNT; number++) {
    CHECK(squares[number] == number * number, "task %d had not run after the wait", number);
  }
  printf("%d tasks have run\n", COUNT);
  free(squares);
  dispatch_release(group);
  return 0;
}
