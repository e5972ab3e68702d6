// Block objects: creation, waiting, notification, cancellation, and the type-generic names for them.
// Statements: S17, S52-S55, S58-S60.

#include "check.h"

#include <Block.h>
#include <sched.h>

static void creation(void) {
  dispatch_block_t body = ^{
  };
  check(dispatch_block_create(0x400, body) == NULL);
  check(dispatch_block_create(0x1000, body) == NULL);
  check(dispatch_block_create_with_qos_class(0, 0x42, 0, body) == NULL);
  check(dispatch_block_create_with_qos_class(0, UTILITY, 1, body) == NULL);
  check(dispatch_block_create_with_qos_class(0, UTILITY, -16, body) == NULL);
  check(dispatch_block_create_with_qos_class(0x800, UTILITY, 0, body) == NULL);
  dispatch_block_flags_t all = DISPATCH_BLOCK_BARRIER | DISPATCH_BLOCK_DETACHED | DISPATCH_BLOCK_ASSIGN_CURRENT |
                               DISPATCH_BLOCK_NO_QOS_CLASS | DISPATCH_BLOCK_INHERIT_QOS_CLASS |
                               DISPATCH_BLOCK_ENFORCE_QOS_CLASS;
  check_equal(all, 0x3f);
  for (dispatch_block_flags_t flags = 0; flags <= all; flags++) {
    __block int runs = 0;
    dispatch_block_t block = dispatch_block_create(flags, ^{
      runs++;
    });
    check_that(block != NULL, "every combination of flags", __FILE__, __LINE__);
    block();
    block();
    check_that(runs == 2, "it is a block to be called", __FILE__, __LINE__);
    Block_release(block);
  }
  dispatch_block_t block = dispatch_block_create_with_qos_class(0, UNSPECIFIED, 0, body);
  check(block != NULL);
  Block_release(block);
  block = dispatch_block_create_with_qos_class(DISPATCH_BLOCK_ENFORCE_QOS_CLASS, UTILITY, -15, body);
  check(block != NULL);
  Block_release(block);
  __block int performed = 0;
  dispatch_block_perform(0, ^{
    performed++;
  });
  dispatch_block_perform(DISPATCH_BLOCK_DETACHED | DISPATCH_BLOCK_ENFORCE_QOS_CLASS, ^{
    performed++;
  });
  check_equal(performed, 2);
}

static void waiting(dispatch_queue_t queue) {
  __block int runs = 0;
  dispatch_block_t block = dispatch_block_create(0, ^{
    runs++;
  });
  check(dispatch_block_wait(block, DISPATCH_TIME_NOW) != 0);
  check(dispatch_block_wait(block, dispatch_time(DISPATCH_TIME_NOW, 1000000)) != 0);
  dispatch_async(queue, block);
  check_equal(dispatch_block_wait(block, DISPATCH_TIME_FOREVER), 0);
  check_equal(runs, 1);
  Block_release(block);
  // Done already.
  block = dispatch_block_create(DISPATCH_BLOCK_INHERIT_QOS_CLASS, ^{
    runs++;
  });
  dispatch_sync(queue, block);
  check_equal(dispatch_block_wait(block, DISPATCH_TIME_NOW), 0);
  check_equal(runs, 2);
  Block_release(block);
  // Called like any block.
  block = dispatch_block_create(0, ^{
    runs++;
  });
  block();
  check_equal(dispatch_wait(block, DISPATCH_TIME_FOREVER), 0);
  check_equal(runs, 3);
  Block_release(block);
}

static void notifying(dispatch_queue_t queue) {
  event told;
  event_init(&told);
  event *told_pointer = &told;
  __block int runs = 0;
  dispatch_block_t block = dispatch_block_create(0, ^{
    runs++;
  });
  for (int i = 0; i < 3; i++) {
    dispatch_block_notify(block, dispatch_get_global_queue(0, 0), ^{
      check_that(runs >= 1, "told after it ran", __FILE__, __LINE__);
      event_happens(told_pointer);
    });
  }
  check(!event_has_happened(&told));
  dispatch_async(queue, block);
  for (int i = 0; i < 3; i++) event_wait(&told);
  dispatch_notify(block, queue, ^{
    event_happens(told_pointer);
  });
  event_wait(&told);
  check_equal(runs, 1);
  // Later executions do not notify again.
  dispatch_async(queue, block);
  dispatch_async(queue, block);
  drain(queue);
  check_equal(runs, 3);
  check(!event_has_happened(&told));
  Block_release(block);
}

// A block that is released without having run is followed by its notifications, which are then released.
static void notifying_without_running(dispatch_queue_t queue) {
  event told, freed;
  event_init(&told);
  event_init(&freed);
  event *told_pointer = &told;
  for (int cancelled = 0; cancelled < 2; cancelled++) {
    dispatch_block_t block = dispatch_block_create(0, ^{
      check_that(false, "it does not run", __FILE__, __LINE__);
    });
    dispatch_queue_t captured = dispatch_queue_create("captured", NULL);
    dispatch_set_context(captured, &freed);
    dispatch_set_finalizer_f(captured, event_happens);
    dispatch_block_notify(block, queue, ^{
      dispatch_release(captured);
      event_happens(told_pointer);
    });
    dispatch_block_t other = dispatch_block_create(0, ^{
      event_happens(told_pointer);
    });
    dispatch_block_notify(block, queue, other);
    Block_release(other);
    if (cancelled) dispatch_block_cancel(block);
    check(!event_has_happened(&told));
    Block_release(block);
    event_wait(&told);
    event_wait(&told);
    event_wait(&freed);
  }
}

// Each block holds the one before it. Releasing them recursively would overflow the stack.
static void chain(void) {
  if (!on_concourse()) return;
  dispatch_block_t last = NULL;
  for (int i = 0; i < 100000; i++) {
    dispatch_block_t before = last;
    last = dispatch_block_create(0, ^{
      if (before) before();
    });
    if (before) Block_release(before);
  }
  check(last != NULL);
  Block_release(last);
}

static void cancelling(dispatch_queue_t queue) {
  __block int runs = 0;
  dispatch_block_t block = dispatch_block_create(0, ^{
    runs++;
  });
  check_equal(dispatch_block_testcancel(block), 0);
  dispatch_suspend(queue);
  dispatch_async(queue, block);
  dispatch_block_cancel(block);
  dispatch_block_cancel(block);
  check(dispatch_block_testcancel(block) != 0);
  // Its turn has not come.
  check(dispatch_block_wait(block, DISPATCH_TIME_NOW) != 0);
  dispatch_resume(queue);
  check_equal(dispatch_block_wait(block, DISPATCH_TIME_FOREVER), 0);
  check_equal(runs, 0);
  Block_release(block);
  // It still leaves its group.
  dispatch_group_t group = dispatch_group_create();
  block = dispatch_block_create(0, ^{
    runs++;
  });
  dispatch_cancel(block);
  check(dispatch_testcancel(block) != 0);
  dispatch_group_async(group, queue, block);
  check_equal(dispatch_group_wait(group, DISPATCH_TIME_FOREVER), 0);
  block();
  check_equal(runs, 0);
  Block_release(block);
  dispatch_release(group);
  // A running block is not interrupted, and can test for cancellation.
  __block dispatch_block_t self;
  __block bool asked = false;
  self = dispatch_block_create(0, ^{
    dispatch_block_cancel(self);
    asked = dispatch_block_testcancel(self) != 0;
    runs++;
  });
  dispatch_async(queue, self);
  check_equal(dispatch_block_wait(self, DISPATCH_TIME_FOREVER), 0);
  check(asked);
  check_equal(runs, 1);
  Block_release(self);
}

static void barriers(void) {
  dispatch_queue_t queue = dispatch_queue_create("barriers", DISPATCH_QUEUE_CONCURRENT);
  __block int inside = 0, overlaps = 0, runs = 0;
  for (int i = 0; i < 1000; i++) {
    dispatch_async(queue, ^{
      __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
      __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    });
    if (i % 10 != 0) continue;
    dispatch_block_t block = dispatch_block_create(DISPATCH_BLOCK_BARRIER, ^{
      if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) != 1) overlaps++;
      dispatch_assert_queue_barrier(queue);
      runs++;
      __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    });
    if (i % 20) {
      dispatch_async(queue, block);
    } else {
      dispatch_sync(queue, block);
    }
    Block_release(block);
  }
  dispatch_barrier_sync(queue, ^{
  });
  check_equal(overlaps, 0);
  check_equal(runs, 100);
  dispatch_release(queue);
}

// Either the flag or the call makes a barrier.
static void barriers_by_call(void) {
  dispatch_queue_t queue = dispatch_queue_create("blocks.barriers.call", DISPATCH_QUEUE_CONCURRENT);
  __block int inside = 0, overlaps = 0;
  dispatch_block_t block = dispatch_block_create(0, ^{
    __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
    for (int turn = 0; turn < 100; turn++) sched_yield();
    __atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
  });
  for (int round = 0; round < 100; round++) {
    dispatch_barrier_async(queue, block);
    dispatch_async(queue, ^{
      if (__atomic_load_n(&inside, __ATOMIC_SEQ_CST)) count_up(&overlaps);
    });
  }
  dispatch_barrier_sync(queue, block);
  check_equal(count_of(&overlaps), 0);
  Block_release(block);
  dispatch_release(queue);
}

int main(void) {
  dispatch_queue_t queue = dispatch_queue_create("blocks", NULL);
  creation();
  waiting(queue);
  notifying(queue);
  notifying_without_running(queue);
  chain();
  cancelling(queue);
  barriers();
  barriers_by_call();
  dispatch_release(queue);
  return finish();
}
