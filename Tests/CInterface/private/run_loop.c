// The hooks with which a run loop serves the main queue and its own queue.
// Statements: S39, S40, S42.

#include "check.h"

#include <fcntl.h>
#include <poll.h>

static int descriptor;
static int runs;

static bool is_readable(void) {
  struct pollfd one = {descriptor, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

static void run(void *context) {
  (void)context;
  runs++;
  dispatch_assert_queue(dispatch_get_main_queue());
  check_text(dispatch_queue_get_label(NULL), "com.apple.main-thread");
}

static void run_and_add(void *context) {
  run(context);
  dispatch_async_f(dispatch_get_main_queue(), NULL, run);
}

static void submit_from_elsewhere(void *done) {
  dispatch_sync_f(dispatch_get_main_queue(), NULL, run);
  event_happens(done);
}

static void serve_once(void) {
  struct pollfd one = {descriptor, POLLIN, 0};
  uint64_t value;
  poll(&one, 1, -1);
  (void)!read(descriptor, &value, sizeof value);
  _dispatch_main_queue_callback_4CF(NULL);
}

static void main_queue(void) {
  descriptor = _dispatch_get_main_queue_port_4CF();
  check(descriptor >= 0);
  check_equal(descriptor, _dispatch_get_main_queue_handle_4CF());
  check_equal(descriptor, _dispatch_get_main_queue_port_4CF());
  check(fcntl(descriptor, F_GETFL) & O_NONBLOCK);
  check(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
  check(!is_readable());
  dispatch_async_f(dispatch_get_main_queue(), NULL, run);
  dispatch_async_f(dispatch_get_main_queue(), NULL, run_and_add);
  dispatch_async_f(dispatch_get_main_queue(), NULL, run);
  check(is_readable());
  check_equal(runs, 0);
  serve_once();
  // Items added meanwhile run in the next round.
  check_equal(runs, 3);
  check(is_readable());
  serve_once();
  check_equal(runs, 4);
  // Another thread waits for the main queue.
  event done;
  event_init(&done);
  dispatch_async_f(dispatch_get_global_queue(0, 0), &done, submit_from_elsewhere);
  while (runs < 5) serve_once();
  event_wait(&done);
  check_equal(runs, 5);
  // Timers too.
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 1000000), dispatch_get_main_queue(), NULL, run);
  while (runs < 6) serve_once();
  check_equal(runs, 6);
}

static void own_queue(void) {
  dispatch_queue_t queue = _dispatch_runloop_root_queue_create_4CF("run loop", 0);
  check(queue != NULL);
  check_text(dispatch_queue_get_label(queue), "run loop");
  int counter = 0;
  for (int i = 0; i < 3; i++) dispatch_async_f(queue, &counter, count_up);
  check_equal(counter, 0);
  check(_dispatch_runloop_root_queue_perform_4CF(queue));
  check_equal(counter, 1);
  check(_dispatch_runloop_root_queue_perform_4CF(queue));
  check(!_dispatch_runloop_root_queue_perform_4CF(queue));
  check_equal(counter, 3);
  check(!_dispatch_runloop_root_queue_perform_4CF(queue));
  _dispatch_runloop_root_queue_wakeup_4CF(queue);
  dispatch_release(queue);
}

int main(void) {
  main_queue();
  own_queue();
  check(_dispatch_begin_NSAutoReleasePool == NULL);
  check(_dispatch_end_NSAutoReleasePool == NULL);
  return finish();
}
