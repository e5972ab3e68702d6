// Submitting blocks: captures, order, barriers, loops, later items.
// Statements: S1, S2, S5, S6, S11, S15, S76, S81.

#include "check.h"

#include <Block.h>

int main(void) {
  dispatch_queue_t serial = dispatch_queue_create("serial", DISPATCH_QUEUE_SERIAL);
  dispatch_queue_t concurrent = dispatch_queue_create("concurrent", DISPATCH_QUEUE_CONCURRENT);

  __block int next = 0;
  __block bool in_order = true;
  for (int i = 0; i < 10000; i++) {
    dispatch_block_t item = ^{
      if (next++ != i) in_order = false;
    };
    if (i % 3 == 0) {
      dispatch_barrier_async(serial, item);
    } else {
      dispatch_async(serial, item);
    }
  }
  dispatch_sync(serial, ^{
    next++;
  });
  check_equal(next, 10001);
  check(in_order);

  // Synchronous blocks are not copied: they see the caller's own variables through a pointer, on its thread.
  int local = 1;
  int *pointer = &local;
  pthread_t self = pthread_self();
  __block bool same_thread = false;
  dispatch_sync(serial, ^{
    *pointer += local;
    same_thread = pthread_equal(pthread_self(), self);
  });
  check_equal(local, 2);
  check(same_thread);
  dispatch_barrier_sync(concurrent, ^{
    *pointer = 10;
    dispatch_assert_queue_barrier(concurrent);
  });
  check_equal(local, 10);
  dispatch_async_and_wait(serial, ^{
    *pointer += 1;
  });
  check_equal(local, 11);
  dispatch_barrier_async_and_wait(concurrent, ^{
    *pointer += 1;
    dispatch_assert_queue_barrier(concurrent);
  });
  check_equal(local, 12);

  // Barriers exclude all others.
  __block int running = 0, overlaps = 0, plain = 0, barriers = 0;
  int *running_now = &running;
  (void)running_now;
  for (int i = 0; i < 2000; i++) {
    if (i % 20 == 0) {
      dispatch_barrier_async(concurrent, ^{
        if (__atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST) != 1) overlaps++;
        barriers++;
        __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
      });
    } else {
      dispatch_async(concurrent, ^{
        __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&plain, 1, __ATOMIC_SEQ_CST);
        __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
      });
    }
  }
  dispatch_barrier_sync(concurrent, ^{
  });
  check_equal(overlaps, 0);
  check_equal(barriers, 100);
  check_equal(plain, 1900);

  // A captured object is released when the item has run.
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  __block int destroyed = 0;
  dispatch_async(serial, ^{
    dispatch_block_t copy = Block_copy(^{
      destroyed++;
    });
    copy();
    Block_release(copy);
    dispatch_semaphore_signal(done);
  });
  check_equal(dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER), 0);
  check_equal(destroyed, 1);

  // Loops.
  static unsigned char visits[5000];
  dispatch_apply(5000, concurrent, ^(size_t i) {
    visits[i]++;
  });
  dispatch_apply(5000, DISPATCH_APPLY_AUTO, ^(size_t i) {
    visits[i]++;
  });
  bool twice = true;
  for (int i = 0; i < 5000; i++) twice = twice && visits[i] == 2;
  check(twice);
  dispatch_apply(0, serial, ^(size_t i) {
    visits[i] = 99;
  });
  check_equal(visits[0], 2);

  // Later.
  dispatch_after(dispatch_time(DISPATCH_TIME_NOW, 1000000), serial, ^{
    dispatch_semaphore_signal(done);
  });
  check_equal(dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER), 0);

  // Once.
  static dispatch_once_t predicate;
  __block int once = 0;
  for (int i = 0; i < 3; i++) {
    dispatch_once(&predicate, ^{
      once++;
    });
  }
  dispatch_apply(100, DISPATCH_APPLY_AUTO, ^(size_t i) {
    (void)i;
    static dispatch_once_t raced;
    dispatch_once(&raced, ^{
      once += 10;
    });
  });
  check_equal(once, 11);
  check(predicate == ~(dispatch_once_t)0);

  // A workloop waits with this function only.
  dispatch_workloop_t loop = dispatch_workloop_create("loop");
  dispatch_async_and_wait(loop, ^{
    *pointer = 77;
  });
  check_equal(local, 77);
  dispatch_release(loop);
  dispatch_release(done);
  dispatch_release(concurrent);
  dispatch_release(serial);
  return finish();
}
