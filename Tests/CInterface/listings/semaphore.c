// A bound for a resource: no more open files than half of what the process may have.

#include "listing.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

enum { TIMES = 2000 };

static _Atomic int open_now;
static _Atomic int most_at_once;
static _Atomic int opened;

static void open_often(int limit) {
  dispatch_queue_t queue = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
  dispatch_semaphore_t descriptors = dispatch_semaphore_create(limit);
  open_now = most_at_once = opened = 0;
  dispatch_apply(TIMES, queue, ^(size_t index) {
    (void)index;
    dispatch_semaphore_wait(descriptors, DISPATCH_TIME_FOREVER);
    // Counted from before the file is opened until after it is closed.
    int now = ++open_now;
    int most = most_at_once;
    while (now > most && !atomic_compare_exchange_weak(&most_at_once, &most, now)) {}
    int descriptor = open("/etc/services", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
      opened += 1;
      close(descriptor);
    }
    open_now -= 1;
    dispatch_semaphore_signal(descriptors);
  });
  CHECK(opened == TIMES, "only %d of %d files could be opened", opened, TIMES);
  CHECK(most_at_once <= limit, "%d files were open at once, and %d were allowed", most_at_once, limit);
  dispatch_release(descriptors);
}

int main(void) {
  int limit = getdtablesize() / 2;
  open_often(limit);
  printf("%d files opened, never more than %d at once\n", opened, limit);
  // The limit is felt when it is less than the number of threads.
  open_often(1);
  CHECK(most_at_once == 1, "%d files were open at once, and one was allowed", most_at_once);
  return 0;
}
