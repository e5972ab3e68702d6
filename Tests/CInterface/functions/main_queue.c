// The main queue under dispatch_main.
// Statements: S7, S36, S38, S139.

#include "check.h"

static pthread_t main_thread;
static int order;
static dispatch_queue_t above;

static void last(void *context) {
  (void)context;
  check_equal(order, 3);
  exit(finish());
}

static void first(void *context) {
  check(context == &order);
  check_equal(order++, 0);
  dispatch_assert_queue(dispatch_get_main_queue());
  dispatch_assert_queue_barrier(dispatch_get_main_queue());
  check_text(dispatch_queue_get_label(NULL), "com.apple.main-thread");
  check(dispatch_get_current_queue() == dispatch_get_main_queue());
  // Ours runs the main queue on the main thread.
  if (on_concourse()) check(pthread_equal(pthread_self(), main_thread));
}

static void synchronous(void *context) {
  (void)context;
  order++;
  dispatch_assert_queue(dispatch_get_main_queue());
  if (on_concourse()) check(pthread_equal(pthread_self(), main_thread));
}

static void elsewhere(void *context) {
  (void)context;
  dispatch_assert_queue_not(dispatch_get_main_queue());
  dispatch_sync_f(dispatch_get_main_queue(), NULL, synchronous);
  check_equal(order, 2);
  dispatch_sync_f(above, NULL, synchronous);
  check_equal(order, 3);
  dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 1000000), dispatch_get_main_queue(), NULL, last);
}

int main(void) {
  main_thread = pthread_self();
  check(dispatch_get_main_queue() != NULL);
  check((void *)dispatch_get_main_queue() == (void *)&_dispatch_main_q);
  above = dispatch_queue_create_with_target("above main", NULL, dispatch_get_main_queue());
  dispatch_async_f(dispatch_get_main_queue(), &order, first);
  check_equal(order, 0);
  dispatch_async_f(dispatch_get_global_queue(0, 0), NULL, elsewhere);
  dispatch_main();
}
