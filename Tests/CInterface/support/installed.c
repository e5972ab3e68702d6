// A user's program, compiled only with the flags of pkg-config.

#include <dispatch/dispatch.h>
#include <stdio.h>

static void add(void *sum, size_t i) { __atomic_fetch_add((int *)sum, (int)i, __ATOMIC_RELAXED); }

int main(void) {
  int sum = 0;
  dispatch_apply_f(10, DISPATCH_APPLY_AUTO, &sum, add);
#ifdef __BLOCKS__
  __block int twice = 0;
  dispatch_queue_t queue = dispatch_queue_create("installed", DISPATCH_QUEUE_SERIAL);
  dispatch_async(queue, ^{
    twice = sum * 2;
  });
  dispatch_sync(queue, ^{
  });
  dispatch_release(queue);
  printf("%d\n", twice);
  return twice == 90 ? 0 : 1;
#else
  printf("%d\n", sum);
  return sum == 45 ? 0 : 1;
#endif
}
