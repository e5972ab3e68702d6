// Under a filter that kills the process for system calls that set or ask for priorities or yield, as some services have
// and some programs install for themselves, all queues still work: if it was there first, and if it comes later, with a
// recording, too.

#include "killing_filter.h"

#include <unistd.h>

// Items of every class, hops between threads, and a process that an item starts.
static void work(void) {
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  const long classes[] = {USER_INTERACTIVE, USER_INITIATED, NORMAL, UTILITY, BACKGROUND};
  for (int i = 0; i < 5; i++) {
    for (int round = 0; round < 100; round++) {
      dispatch_async(dispatch_get_global_queue(classes[i], 0), ^{
        dispatch_semaphore_signal(done);
      });
      dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
    }
    dispatch_async(dispatch_get_global_queue(classes[i], 0), ^{
      pid_t child = fork();
      if (child == 0) _exit(0);
      int status = -1;
      check_equal(waitpid(child, &status, 0), child);
      check_equal(status, 0);
      dispatch_semaphore_signal(done);
    });
    dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  }
  dispatch_release(done);
}

static void check_in_child(bool comes_first, bool records) {
  pid_t child = fork();
  if (child == 0) {
    // The runtime, which reads this, is made below.
    if (records) setenv("CONCOURSE_RECORDER", "1000", 1);
    setenv("CONCOURSE_RECORDER_DIR", "/tmp", 1);
    if (!comes_first) work();
    install_killing_filter(false);
    work();
    _exit(checks_failed);
  }
  int status = -1;
  check_equal(waitpid(child, &status, 0), child);
  check_equal(status, 0);
  char recording[64];
  snprintf(recording, sizeof recording, "/tmp/concourse-%d.recording", child);
  check_equal(unlink(recording), records ? 0 : -1);
}

int main(void) {
  for (int records = 0; records < 2; records++) {
    check_in_child(true, records);
    check_in_child(false, records);
  }
  return finish();
}
