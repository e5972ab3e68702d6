// Two queues that each read and then change what a third one guards: an update is lost if both read first.
#include <dispatch/dispatch.h>

static int total;

static void add(void *guard) {
  __block int seen;
  dispatch_sync((dispatch_queue_t)guard, ^{ seen = total; });
  dispatch_sync((dispatch_queue_t)guard, ^{ total = seen + 1; });
}

int main(void) {
  dispatch_queue_t first = dispatch_queue_create("first", NULL), second = dispatch_queue_create("second", NULL);
  dispatch_queue_t guard = dispatch_queue_create("guard", NULL);
  dispatch_group_t group = dispatch_group_create();
  for (int i = 0; i < 3; i++) {
    dispatch_group_async_f(group, first, guard, add);
    dispatch_group_async_f(group, second, guard, add);
  }
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  return total == 6 ? 0 : 3;
}
