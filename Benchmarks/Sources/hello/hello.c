// The smallest program that uses the library: how long do its start and its end take?
#include "cbench.h"

#include <dispatch/dispatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void greet(void *done) {
  puts("hello");
  dispatch_semaphore_signal(done);
}

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "--library") == 0) return bench_print_dispatch_libraries();
  // A timed run that hangs ends itself.
  alarm(30);
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  dispatch_queue_t queue = dispatch_queue_create("hello", NULL);
  dispatch_async_f(queue, done, greet);
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  return 0;
}
