// Sources for memory pressure, which a test cannot cause, and signals to worker threads.
// Statements: S114.

#include "check.h"

static pthread_t worker;
static volatile sig_atomic_t signals;
static event is_there, heard, released;

static void hear(int number) {
  (void)number;
  signals++;
  event_happens(&heard);
}

static void stay(void *context) {
  (void)context;
  worker = pthread_self();
  event_happens(&is_there);
  event_wait(&released);
}

static void end(void *ran) { dispatch_semaphore_signal(ran); }

int main(void) {
  event_init(&is_there);
  event_init(&heard);
  event_init(&released);
  dispatch_queue_t queue = dispatch_queue_create("memory", NULL);
  uintptr_t mask = DISPATCH_MEMORYPRESSURE_NORMAL | DISPATCH_MEMORYPRESSURE_WARN | DISPATCH_MEMORYPRESSURE_CRITICAL;
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_MEMORYPRESSURE, 0, mask, queue);
  check(source != NULL);
  check_equal(dispatch_source_get_mask(source), mask);
  dispatch_semaphore_t cancelled = dispatch_semaphore_create(0);
  dispatch_source_set_event_handler(source, ^{
    check_that((dispatch_source_get_data(source) & ~mask) == 0, "a level", __FILE__, __LINE__);
  });
  dispatch_source_set_cancel_handler(source, ^{
    dispatch_semaphore_signal(cancelled);
  });
  dispatch_activate(source);
  dispatch_source_cancel(source);
  dispatch_semaphore_wait(cancelled, DISPATCH_TIME_FOREVER);
  dispatch_release(source);
  dispatch_release(cancelled);
  check(dispatch_source_create(DISPATCH_SOURCE_TYPE_MEMORYPRESSURE, 0, 0x1000, queue) == NULL);

  struct sigaction action = {.sa_handler = hear};
  sigaction(SIGUSR2, &action, NULL);
  check_equal(dispatch_allow_send_signals(SIGUSR2), 0);
  dispatch_async_f(queue, NULL, stay);
  event_wait(&is_there);
  check_equal(pthread_kill(worker, SIGUSR2), 0);
  event_happens(&released);
  // The worker may have taken that item before it looked at the signals: it does so before one of its next items.
  dispatch_semaphore_t ran = dispatch_semaphore_create(0);
  while (signals == 0) {
    dispatch_async_f(queue, ran, end);
    dispatch_semaphore_wait(ran, DISPATCH_TIME_FOREVER);
  }
  event_wait(&heard);
  check_equal(signals, 1);
  drain(queue);
  dispatch_release(ran);
  errno = 0;
  check_equal(dispatch_allow_send_signals(100000), -1);
  check_equal(errno, EINVAL);
  dispatch_release(queue);
  return finish();
}
