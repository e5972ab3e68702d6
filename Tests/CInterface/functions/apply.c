// Parallel loops.
// Statements: S76-S79.

#include "check.h"

enum { many = 10000 };

static unsigned char visits[many];
static int last, in_order, strangers;

static void visit(void *context, size_t i) {
  if (context != (void *)visits) count_up(&strangers);
  __atomic_fetch_add(&visits[i], 1, __ATOMIC_SEQ_CST);
}

static void sequence(void *context, size_t i) {
  (void)context;
  if (last == (int)i) in_order++;
  last++;
}

static void expect_all(size_t count, const char *what) {
  bool all = true;
  for (size_t i = 0; i < many; i++) all = all && visits[i] == (i < count ? 1 : 0);
  check_that(all, what, __FILE__, __LINE__);
  memset(visits, 0, sizeof visits);
}

static void inner(void *context, size_t i) { visit(context, i); }
static void outer(void *context, size_t i) {
  (void)i;
  dispatch_apply_f(100, DISPATCH_APPLY_AUTO, context, inner);
}

static dispatch_queue_t busy;
static void from_inside(void *context) { dispatch_apply_f(500, busy, context, visit); }

int main(void) {
  dispatch_queue_t concurrent = dispatch_queue_create("concurrent", DISPATCH_QUEUE_CONCURRENT);
  dispatch_queue_t serial = dispatch_queue_create("serial", NULL);
  dispatch_queue_t funnel = dispatch_queue_create_with_target("funnel", DISPATCH_QUEUE_CONCURRENT, serial);
  dispatch_apply_f(0, concurrent, visits, visit);
  expect_all(0, "no iteration, no call");
  dispatch_apply_f(1, concurrent, visits, visit);
  expect_all(1, "one iteration");
  dispatch_apply_f(many, concurrent, visits, visit);
  expect_all(many, "on a concurrent queue");
  dispatch_apply_f(many, DISPATCH_APPLY_AUTO, visits, visit);
  expect_all(many, "on whatever suits");
  dispatch_apply_f(many, dispatch_get_global_queue(0, 0), visits, visit);
  expect_all(many, "on a global queue");
  dispatch_apply_f(many, dispatch_get_global_queue(BACKGROUND, 0), visits, visit);
  expect_all(many, "on a global queue of another class");
  dispatch_apply_f(many, funnel, visits, visit);
  expect_all(many, "on a queue above a serial one");

  dispatch_apply_f(1000, serial, NULL, sequence);
  check_equal(in_order, 1000);
  check_equal(last, 1000);

  // Nested, 50 times the same 100.
  dispatch_apply_f(50, DISPATCH_APPLY_AUTO, visits, outer);
  bool fifty = true;
  for (int i = 0; i < 100; i++) fifty = fifty && visits[i] == 50;
  check(fifty);
  memset(visits, 0, sizeof visits);

  check_equal(strangers, 0);

  // From an ordinary item of the same queue.
  busy = concurrent;
  dispatch_sync_f(concurrent, visits, from_inside);
  expect_all(500, "from an item of the same concurrent queue");
  dispatch_release(funnel);
  dispatch_release(serial);
  dispatch_release(concurrent);
  return finish();
}
