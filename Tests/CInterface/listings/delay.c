// A prompt that appears after two seconds, on the main queue.

#include "listing.h"
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(void) {
  double start = now();
  dispatch_after(dispatch_time(DISPATCH_TIME_NOW, 2 * (int64_t)NSEC_PER_SEC), dispatch_get_main_queue(), ^{
    double waited = now() - start;
    printf("add photos to begin (after %.1f s)\n", waited);
    CHECK(waited >= 2, "the prompt appeared after %g s, too early", waited);
    // A machine that has other things to do may be late; not this late.
    CHECK(waited < 30, "the prompt appeared after %g s, too late", waited);
    exit(EXIT_SUCCESS);
  });
  dispatch_main();
}
