// Sources that watch other processes.
// Statements: S114.

#include "check.h"

static pid_t start(int gate) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    (void)!read(gate, &byte, 1);
    _exit(7);
  }
  return child;
}

int main(void) {
  int gate[2];
  check_equal(pipe(gate), 0);
  pid_t child = start(gate[0]);
  dispatch_semaphore_t handled = dispatch_semaphore_create(0), cancelled = dispatch_semaphore_create(0);
  dispatch_queue_t queue = dispatch_queue_create("processes", NULL);
  dispatch_source_t source =
      dispatch_source_create(DISPATCH_SOURCE_TYPE_PROC, (uintptr_t)child, DISPATCH_PROC_EXIT, queue);
  check(source != NULL);
  check_equal(dispatch_source_get_handle(source), child);
  check_equal(dispatch_source_get_mask(source), DISPATCH_PROC_EXIT);
  __block uintptr_t data = 0;
  __block int calls = 0;
  dispatch_source_set_event_handler(source, ^{
    data = dispatch_source_get_data(source);
    calls++;
    dispatch_semaphore_signal(handled);
  });
  dispatch_source_set_cancel_handler(source, ^{
    dispatch_semaphore_signal(cancelled);
  });
  dispatch_activate(source);
  drain(queue);
  check_equal(calls, 0);
  check_equal(write(gate[1], "x", 1), 1);
  check_equal(dispatch_semaphore_wait(handled, DISPATCH_TIME_FOREVER), 0);
  check(data & DISPATCH_PROC_EXIT);
  // The parent can still wait for it.
  int status = 0;
  check_equal(waitpid(child, &status, 0), child);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  dispatch_source_cancel(source);
  dispatch_semaphore_wait(cancelled, DISPATCH_TIME_FOREVER);
  check_equal(calls, 1);
  dispatch_release(source);

  // A process that ended before the watch began.
  child = start(gate[0]);
  check_equal(write(gate[1], "x", 1), 1);
  siginfo_t information;
  check_equal(waitid(P_PID, (id_t)child, &information, WEXITED | WNOWAIT), 0);
  source = dispatch_source_create(DISPATCH_SOURCE_TYPE_PROC, (uintptr_t)child, DISPATCH_PROC_EXIT, queue);
  check(source != NULL);
  dispatch_set_context(source, handled);
  dispatch_source_set_event_handler(source, ^{
    dispatch_semaphore_signal(handled);
  });
  dispatch_activate(source);
  check_equal(dispatch_semaphore_wait(handled, DISPATCH_TIME_FOREVER), 0);
  waitpid(child, &status, 0);
  dispatch_source_cancel(source);
  dispatch_release(source);
  dispatch_release(queue);
  dispatch_release(handled);
  dispatch_release(cancelled);
  return finish();
}
