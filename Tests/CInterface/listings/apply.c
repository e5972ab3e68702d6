// A loop whose iterations run at the same time; and what happens on a queue that waits for itself.

#include "listing.h"
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 100, STRIDE = 4 };

static void loop(void) {
  dispatch_queue_t queue = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
  int *visits = calloc(COUNT, sizeof *visits);
  // Each iteration has a place of its own to write to.
  dispatch_apply(COUNT, queue, ^(size_t index) { visits[index] += 1; });
  for (int index = 0; index < COUNT; index++) {
    CHECK(visits[index] == 1, "iteration %d ran %d times", index, visits[index]);
  }
  free(visits);
}

// Where an iteration would be too little work, each takes a stride.
static void strides(void) {
  dispatch_queue_t queue = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
  long *sums = calloc(COUNT / STRIDE, sizeof *sums);
  dispatch_apply(COUNT / STRIDE, queue, ^(size_t stride) {
    long sum = 0;
    for (size_t number = stride * STRIDE; number < (stride + 1) * STRIDE; number++) sum += (long)number;
    sums[stride] = sum;
  });
  long sum = 0;
  for (int stride = 0; stride < COUNT / STRIDE; stride++) sum += sums[stride];
  free(sums);
  CHECK(sum == COUNT * (COUNT - 1) / 2, "the strides add up to %ld", sum);
  printf("%d iterations in %d strides: %ld\n", COUNT, COUNT / STRIDE, sum);
}

// A process that waits, in an item of a serial queue, for iterations on that queue. Its only way out is a
// trap: it must die of a signal, and neither go on nor hang.
static void wait_for_oneself(void) {
  // In a process that has used no other thread: what it inherits would be without them.
  pid_t child = fork();
  CHECK(child >= 0, "fork failed");
  if (child == 0) {
    // No memory dump, and no more words than needed.
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (freopen("/dev/null", "w", stderr) == NULL) _exit(0);
    alarm(60);
    dispatch_queue_t queue = dispatch_queue_create("org.concourse.guide.deadlock", NULL);
    dispatch_sync(queue, ^{
      dispatch_apply(2, queue, ^(size_t index) { (void)index; });
    });
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child, "waitpid failed");
  CHECK(!WIFEXITED(status), "iterations ran on a serial queue inside of its own item");
  int signal = WTERMSIG(status);
  CHECK(signal == SIGILL || signal == SIGTRAP, "waiting for oneself ended with: %s", strsignal(signal));
  printf("waiting for oneself ends with: %s\n", strsignal(signal));
}

int main(void) {
  wait_for_oneself();
  loop();
  strides();
  return 0;
}
