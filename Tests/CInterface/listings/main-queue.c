// Items for the main thread, which serves the main queue once the program has called dispatch_main.
//
// With the toolchain's library on Linux, dispatch_main ends the main thread, and workers serve the main queue from then
// on. So the thread is checked on our library only.

#include "listing.h"
#include <unistd.h>

static bool is_main_thread(void) { return gettid() == getpid(); }

int main(void) {
  __block int order = 0;
  dispatch_async(dispatch_get_main_queue(), ^{
    CHECK(order == 1, "an item of the main queue ran before the main thread served it");
  });
  dispatch_async(dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0), ^{
    bool is_here = is_main_thread();
    CHECK(!is_here, "an item of a global queue ran on the main thread");
    dispatch_async(dispatch_get_main_queue(), ^{
      printf("an item of the main queue ran on %s\n", is_main_thread() ? "the main thread" : "a worker");
      CHECK(is_main_thread() || !on_concourse(),
        "an item of the main queue ran on thread %d of process %d", gettid(), getpid());
      exit(EXIT_SUCCESS);
    });
  });
  order = 1;
  dispatch_main();
}
