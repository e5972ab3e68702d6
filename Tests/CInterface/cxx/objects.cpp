// From C++: object types convert to their base, functions have C linkage, and lambdas without captures are items.

#include "check.h"

#include <atomic>
#include <vector>

static std::atomic<int> count(0);

// The overload chosen for a queue shows the base of its type.
static int kind(dispatch_object_t) { return 1; }
static int kind(dispatch_queue_t) { return 2; }

static void conversions() {
  dispatch_queue_t queue = dispatch_queue_create("c++", DISPATCH_QUEUE_CONCURRENT);
  dispatch_group_t group = dispatch_group_create();
  check_equal(kind(queue), 2);
  check_equal(kind(dispatch_get_main_queue()), 2);
  check_equal(kind(dispatch_get_global_queue(0, 0)), 2);
  check_equal(kind(group), 1);
  std::vector<dispatch_object_t> objects;
  objects.push_back(queue);
  objects.push_back(group);
  objects.push_back(dispatch_data_empty);
  for (dispatch_object_t object : objects) {
    dispatch_retain(object);
    dispatch_release(object);
  }
  check(dispatch_data_get_size(dispatch_data_empty) == 0);
  dispatch_release(queue);
  dispatch_release(group);
}

static void items() {
  dispatch_queue_t queue = dispatch_queue_create("c++", nullptr);
  dispatch_group_t group = dispatch_group_create();
  for (int i = 0; i < 100; i++) {
    dispatch_group_async_f(group, queue, nullptr, [](void *) { count++; });
  }
  check_equal(dispatch_group_wait(group, DISPATCH_TIME_FOREVER), 0);
  check_equal(count.load(), 100);
  std::vector<int> squares(50);
  dispatch_apply_f(squares.size(), DISPATCH_APPLY_AUTO, &squares, [](void *context, size_t i) {
    (*static_cast<std::vector<int> *>(context))[i] = static_cast<int>(i * i);
  });
  check_equal(squares[49], 2401);
  static dispatch_once_t predicate;
  for (int i = 0; i < 3; i++) dispatch_once_f(&predicate, nullptr, [](void *) { count++; });
  check_equal(count.load(), 101);
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  static event handled;
  event_init(&handled);
  dispatch_set_context(source, &handled);
  dispatch_source_set_event_handler_f(source, event_happens);
  dispatch_activate(source);
  dispatch_source_merge_data(source, 1);
  event_wait(&handled);
  dispatch_source_cancel(source);
  dispatch_release(source);
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(0);
  check_equal(dispatch_semaphore_signal(semaphore), 0);
  check_equal(dispatch_semaphore_wait(semaphore, DISPATCH_TIME_NOW), 0);
  dispatch_release(semaphore);
  dispatch_release(group);
  dispatch_release(queue);
}

#ifdef __BLOCKS__
static void blocks() {
  dispatch_queue_t queue = dispatch_queue_create("c++", nullptr);
  __block int sum = 0;
  std::vector<int> captured(3, 7);
  dispatch_async(queue, ^{
    for (int value : captured) sum += value;
  });
  dispatch_sync(queue, ^{
    sum++;
  });
  check_equal(sum, 22);
  dispatch_release(queue);
}
#endif

int main() {
  conversions();
  items();
#ifdef __BLOCKS__
  blocks();
#endif
  return finish();
}
