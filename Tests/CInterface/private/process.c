// The process, forks, blocks with vouchers, measurement, and the os_object functions.
// Statements: S148.

#include "check.h"

#include <Block.h>

static void forks(void) {
  check(!_dispatch_is_multithreaded());
  check(!_dispatch_is_fork_of_multithreaded_parent());
  event ran;
  event_init(&ran);
  dispatch_async_f(dispatch_get_global_queue(0, 0), &ran, event_happens);
  event_wait(&ran);
  check(_dispatch_is_multithreaded());
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    // Synchronous items need only this thread.
    int counter = 0;
    dispatch_queue_t queue = dispatch_queue_create("child", NULL);
    dispatch_sync_f(queue, &counter, count_up);
    // The toolchain's library does not recognise it.
    bool knows = !on_concourse() || _dispatch_is_fork_of_multithreaded_parent();
    _exit(counter == 1 && knows ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  check_equal(status, 0);
  check(!_dispatch_is_fork_of_multithreaded_parent());
}

static void blocks_with_vouchers(void) {
  __block int runs = 0;
  dispatch_block_t block = dispatch_block_create_with_voucher(0, NULL, ^{
    runs++;
  });
  check(block != NULL);
  block();
  check_equal(dispatch_block_wait(block, DISPATCH_TIME_NOW), 0);
  Block_release(block);
  block = dispatch_block_create_with_voucher_and_qos_class(0, NULL, UTILITY, -1, ^{
    runs++;
  });
  check(block != NULL);
  block();
  Block_release(block);
  check_equal(runs, 2);
  block = _dispatch_block_create(0, NULL, 0, ^{
    runs++;
  });
  check(block != NULL);
  block();
  check_equal(dispatch_block_wait(block, DISPATCH_TIME_NOW), 0);
  Block_release(block);
  check_equal(runs, 3);
  check(dispatch_block_create_with_voucher(0x1000, NULL, ^{
        }) == NULL);
  check(dispatch_block_create_with_voucher_and_qos_class(0, NULL, 0x42, 0, ^{
        }) == NULL);
}

static void measurement(void) {
  int counter = 0;
  (void)dispatch_benchmark_f(100, &counter, count_up);
  check(counter >= 100);
  __block int runs = 0;
  (void)dispatch_benchmark(100, ^{
    runs++;
  });
  check(runs >= 100);
}

// The functions for `pthread_atfork`; they change nothing in the parent.
static void fork_handlers(void) {
  event ran;
  event_init(&ran);
  dispatch_atfork_prepare();
  dispatch_atfork_parent();
  dispatch_async_f(dispatch_get_global_queue(0, 0), &ran, event_happens);
  event_wait(&ran);
  check(true);
}

static event finalized;

static void objects(void) {
  event_init(&finalized);
  dispatch_queue_t queue = dispatch_queue_create("counted", NULL);
  dispatch_set_context(queue, &finalized);
  dispatch_set_finalizer_f(queue, event_happens);
  check(os_retain(queue) == (void *)queue);
  check(_os_object_retain((_os_object_t)queue) == (_os_object_t)queue);
  check(_os_object_retain_internal((_os_object_t)queue) == (_os_object_t)queue);
  check(_os_object_retain_internal_n((_os_object_t)queue, 3) == (_os_object_t)queue);
  _os_object_release_internal_n((_os_object_t)queue, 3);
  _os_object_release_internal((_os_object_t)queue);
  _os_object_release((_os_object_t)queue);
  os_release(queue);
  drain(queue);
  check(!event_has_happened(&finalized));
  os_release(queue);
  event_wait(&finalized);
}

int main(void) {
  // Foundation calls this at its start, even if the library is already in use.
  libdispatch_init();
  forks();
  blocks_with_vouchers();
  measurement();
  fork_handlers();
  objects();
  return finish();
}
