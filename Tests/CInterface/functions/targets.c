// Hierarchies of queues: exclusion, changes of target, values of queues, assertions.
// Statements: S3, S20, S22-S25, S136-S141.

#include "check.h"

static int inside, overlaps, runs;

static void exclusive(void *context) {
  (void)context;
  if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) != 1) overlaps++;
  runs++;
  __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

static void exclusion(void) {
  dispatch_queue_t root = dispatch_queue_create("root", NULL);
  dispatch_queue_t queues[4];
  for (int i = 0; i < 4; i++) {
    queues[i] = dispatch_queue_create_with_target("child", i % 2 ? DISPATCH_QUEUE_CONCURRENT : NULL, root);
  }
  for (int i = 0; i < 8000; i++) dispatch_async_f(queues[i % 4], NULL, exclusive);
  for (int i = 0; i < 4; i++) dispatch_barrier_sync_f(queues[i], NULL, exclusive);
  dispatch_sync_f(root, NULL, exclusive);
  check_equal(overlaps, 0);
  check_equal(runs, 8000 + 4 + 1);
  for (int i = 0; i < 4; i++) dispatch_release(queues[i]);
  dispatch_release(root);
}

static char key, other_key;
static const void *volatile no_key = NULL;
static void *found, *found_other;
static int destroyed;
static event destructor_ran;

static void find(void *context) {
  (void)context;
  found = dispatch_get_specific(&key);
  found_other = dispatch_get_specific(&other_key);
}

static void destroy(void *value) {
  destroyed += (int)(intptr_t)value;
  event_happens(&destructor_ran);
}

static void find_synchronously(void *queue) { dispatch_sync_f((dispatch_queue_t)queue, NULL, find); }

static void specifics(void) {
  event_init(&destructor_ran);
  dispatch_queue_t target = dispatch_queue_create("target", NULL);
  dispatch_queue_t queue = dispatch_queue_create_with_target("queue", NULL, target);
  dispatch_queue_t unrelated = dispatch_queue_create("unrelated", NULL);
  check(dispatch_get_specific(&key) == NULL);
  check(dispatch_queue_get_specific(queue, &key) == NULL);
  dispatch_queue_set_specific(queue, &key, (void *)1, destroy);
  dispatch_queue_set_specific(target, &other_key, (void *)10, destroy);
  check(dispatch_queue_get_specific(queue, &key) == (void *)1);
  check(dispatch_queue_get_specific(queue, &other_key) == NULL);
  dispatch_sync_f(queue, NULL, find);
  check(found == (void *)1);
  check(found_other == (void *)10);
  dispatch_sync_f(target, NULL, find);
  check(found == NULL);
  check(found_other == (void *)10);
  // The waiting thread does not matter.
  dispatch_sync_f(queue, unrelated, find_synchronously);
  check(found == NULL);
  check(found_other == NULL);
  // Replaced, removed, and destroyed with the queue.
  dispatch_queue_set_specific(queue, &key, (void *)2, destroy);
  event_wait(&destructor_ran);
  check_equal(destroyed, 1);
  check(dispatch_queue_get_specific(queue, &key) == (void *)2);
  dispatch_queue_set_specific(queue, &key, NULL, NULL);
  event_wait(&destructor_ran);
  check_equal(destroyed, 3);
  check(dispatch_queue_get_specific(queue, &key) == NULL);
  dispatch_queue_set_specific(queue, &key, (void *)4, destroy);
  dispatch_queue_set_specific(queue, no_key, (void *)5, destroy);
  check(dispatch_queue_get_specific(queue, no_key) == NULL);
  check(dispatch_get_specific(no_key) == NULL);
  dispatch_release(queue);
  event_wait(&destructor_ran);
  check_equal(destroyed, 7);
  // Without a destructor there is nothing to call.
  dispatch_queue_set_specific(target, &key, (void *)100, NULL);
  dispatch_queue_set_specific(target, &key, (void *)200, NULL);
  check(dispatch_queue_get_specific(target, &key) == (void *)200);
  dispatch_release(target);
  event_wait(&destructor_ran);
  check_equal(destroyed, 17);
  dispatch_release(unrelated);
  // Global queues can have values too.
  dispatch_queue_set_specific(dispatch_get_main_queue(), &key, (void *)3, NULL);
  check(dispatch_queue_get_specific(dispatch_get_main_queue(), &key) == (void *)3);
  dispatch_queue_set_specific(dispatch_get_main_queue(), &key, NULL, NULL);
}

static void retargeting(void) {
  dispatch_queue_t first = dispatch_queue_create("first", NULL), second = dispatch_queue_create("second", NULL);
  dispatch_queue_set_specific(first, &key, (void *)1, NULL);
  dispatch_queue_set_specific(second, &key, (void *)2, NULL);
  // An active queue made by dispatch_queue_create.
  dispatch_queue_t queue = dispatch_queue_create("legacy", NULL);
  dispatch_set_target_queue(queue, first);
  dispatch_sync_f(queue, NULL, find);
  check(found == (void *)1);
  event gate, done;
  event_init(&gate);
  event_init(&done);
  dispatch_async_f(queue, &gate, wait_in_item);
  dispatch_set_target_queue(queue, second);
  dispatch_async_f(queue, NULL, find);
  dispatch_async_f(queue, &done, event_happens);
  event_happens(&gate);
  event_wait(&done);
  check(found == (void *)2);
  dispatch_set_target_queue(queue, NULL);
  dispatch_sync_f(queue, NULL, find);
  check(found == NULL);
  dispatch_release(queue);
  // An inactive one, at once.
  queue = dispatch_queue_create_with_target("inactive", DISPATCH_QUEUE_SERIAL_INACTIVE, first);
  dispatch_async_f(queue, NULL, find);
  dispatch_set_target_queue(queue, second);
  dispatch_activate(queue);
  drain(queue);
  check(found == (void *)2);
  dispatch_release(queue);
  // Global queues and the main queue keep their target.
  dispatch_set_target_queue(dispatch_get_global_queue(0, 0), first);
  dispatch_async_f(dispatch_get_global_queue(0, 0), &done, event_happens);
  event_wait(&done);
  dispatch_release(first);
  dispatch_release(second);
}

static void own_class_above_global_target(void) {
  // A queue with its own class runs at it, whatever its global target.
  dispatch_queue_attr_t utility = dispatch_queue_attr_make_with_qos_class(NULL, UTILITY, 0);
  dispatch_queue_t queue =
      dispatch_queue_create_with_target("own", utility, dispatch_get_global_queue(BACKGROUND, 0));
  check_equal(dispatch_queue_get_qos_class(queue, NULL), UTILITY);
  drain(queue);
  dispatch_release(queue);
}

static dispatch_queue_t asserted, asserted_child, asserted_other;

static void is_here(void *context) {
  (void)context;
  dispatch_assert_queue(asserted);
  dispatch_assert_queue_barrier(asserted);
  dispatch_assert_queue_not(asserted_other);
  dispatch_assert_queue_debug(asserted);
  dispatch_assert_queue_barrier_debug(asserted);
  dispatch_assert_queue_not_debug(asserted_other);
  check_that(true, "assertions hold", __FILE__, __LINE__);
}

static void is_in_child(void *context) {
  is_here(context);
  dispatch_assert_queue(asserted_child);
}

static void is_beneath(void *context) {
  dispatch_assert_queue(asserted_other);
  dispatch_assert_queue(asserted);
  (void)context;
  check_that(true, "assertions hold for the waiting thread", __FILE__, __LINE__);
}

static void go_beneath(void *context) { dispatch_sync_f(asserted_other, context, is_beneath); }

static void assertions(void) {
  asserted = dispatch_queue_create("asserted", NULL);
  asserted_other = dispatch_queue_create("other", NULL);
  asserted_child = dispatch_queue_create_with_target("child", NULL, asserted);
  dispatch_sync_f(asserted, NULL, is_here);
  dispatch_async_f(asserted, NULL, is_here);
  dispatch_sync_f(asserted_child, NULL, is_in_child);
  dispatch_async_f(asserted_child, NULL, is_in_child);
  dispatch_sync_f(asserted_child, NULL, go_beneath);
  drain(asserted_child);
  // The main thread belongs to the main queue.
  dispatch_assert_queue(dispatch_get_main_queue());
  dispatch_assert_queue_barrier(dispatch_get_main_queue());
  dispatch_assert_queue_not(asserted);
  check(true);
  dispatch_release(asserted_child);
  dispatch_release(asserted);
  dispatch_release(asserted_other);
}

int main(void) {
  exclusion();
  specifics();
  retargeting();
  own_class_above_global_target();
  assertions();
  return finish();
}
