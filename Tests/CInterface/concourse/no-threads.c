// Where the system grants no thread at all, a thread that waits for its turn on a queue runs what is ahead of it.

#include "check.h"

#include <grp.h>
#include <unistd.h>

static int sum;
static void add(void *context) { sum += *(int *)context; }

int main(void) {
  // A user who may have no second thread.
  if (geteuid() == 0) {
    check_equal(setgroups(0, NULL), 0);
    check_equal(setgid(54321), 0);
    check_equal(setuid(54321), 0);
  }
  struct rlimit one = {1, 1};
  check_equal(setrlimit(RLIMIT_NPROC, &one), 0);
  int numbers[] = {1, 2, 4, 8, 16, 32, 64, 128};

  dispatch_queue_t serial = dispatch_queue_create("serial", NULL);
  for (int i = 0; i < 3; i++) dispatch_async_f(serial, &numbers[i], add);
  dispatch_sync_f(serial, &numbers[3], add);
  check_equal(sum, 15);
  dispatch_async_f(serial, &numbers[4], add);
  dispatch_async_and_wait_f(serial, &numbers[5], add);
  check_equal(sum, 63);

  dispatch_queue_t above = dispatch_queue_create_with_target("above", NULL, serial);
  dispatch_async_f(above, &numbers[6], add);
  dispatch_sync_f(above, &numbers[7], add);
  check_equal(sum, 255);

  sum = 0;
  dispatch_queue_t concurrent = dispatch_queue_create("concurrent", DISPATCH_QUEUE_CONCURRENT);
  dispatch_async_f(concurrent, &numbers[0], add);
  dispatch_async_f(concurrent, &numbers[1], add);
  dispatch_barrier_sync_f(concurrent, &numbers[2], add);
  dispatch_barrier_async_f(concurrent, &numbers[3], add);
  dispatch_sync_f(concurrent, &numbers[4], add);
  check_equal(sum, 31);

  // From inside an item of another queue.
  sum = 0;
  dispatch_queue_t outer = dispatch_queue_create("outer", NULL);
  int *number = numbers;
  dispatch_sync(outer, ^{
    dispatch_async_f(serial, &number[0], add);
    dispatch_async(dispatch_get_global_queue(BACKGROUND, 0), ^{
      dispatch_assert_queue_not(outer);
    });
    dispatch_sync_f(serial, &number[1], add);
    dispatch_assert_queue(outer);
  });
  check_equal(sum, 3);
  dispatch_release(outer);
  dispatch_release(concurrent);
  dispatch_release(above);
  dispatch_release(serial);
  return finish();
}
