// Misuse of blocks that ends the process.
// Statements: S8, S12, S53, S56-S58, S61, S75.

#include "check.h"

#include <Block.h>

static dispatch_block_t made(void) {
  return dispatch_block_create(0, ^{
  });
}

static void wait_for_plain(void) {
  dispatch_block_wait(
      ^{
      },
      DISPATCH_TIME_NOW);
}
static void cancel_plain(void) {
  dispatch_block_cancel(^{
  });
}
// The toolchain's headers let the compiler remove a call whose result is not used.
static volatile intptr_t used;
static void test_plain(void) {
  used = dispatch_block_testcancel(^{
  });
}
static void notify_plain(void) {
  dispatch_block_notify(
      ^{
      },
      dispatch_get_main_queue(), ^{
      });
}
static void wait_twice(void) {
  dispatch_block_t block = made();
  block();
  dispatch_block_wait(block, DISPATCH_TIME_FOREVER);
  dispatch_block_wait(block, DISPATCH_TIME_FOREVER);
}
static void wait_after_two_runs(void) {
  dispatch_block_t block = made();
  block();
  block();
  dispatch_block_wait(block, DISPATCH_TIME_FOREVER);
}
static void run_after_wait(void) {
  dispatch_block_t block = made();
  block();
  dispatch_block_wait(block, DISPATCH_TIME_FOREVER);
  block();
}
static void notify_after_two_runs(void) {
  dispatch_block_t block = made();
  block();
  block();
  dispatch_block_notify(block, dispatch_get_global_queue(0, 0), ^{
  });
}
static void perform_with_bad_flags(void) {
  dispatch_block_perform(0x1000, ^{
  });
}
static void sync_on_itself(void) {
  dispatch_queue_t queue = dispatch_queue_create("itself", NULL);
  dispatch_sync(queue, ^{
    dispatch_sync(queue, ^{
    });
  });
}
static void apply_on_itself(void) {
  dispatch_queue_t queue = dispatch_queue_create("itself", NULL);
  dispatch_sync(queue, ^{
    dispatch_apply(3, queue, ^(size_t i) {
      (void)i;
    });
  });
}
static dispatch_once_t predicate;
static void recurse(void) {
  dispatch_once(&predicate, ^{
    recurse();
  });
}
static void null_block(void) {
  dispatch_block_t volatile none = NULL;
  dispatch_async(dispatch_get_global_queue(0, 0), none);
  wait_for_death();
}

int main(void) {
  dies(wait_for_plain);
  dies(cancel_plain);
  dies(test_plain);
  dies(notify_plain);
  dies(wait_twice);
  dies(wait_after_two_runs);
  dies(run_after_wait);
  dies(notify_after_two_runs);
  dies(perform_with_bad_flags);
  dies(sync_on_itself);
  dies(apply_on_itself);
  dies(recurse);
  dies(null_block);
  return finish();
}
