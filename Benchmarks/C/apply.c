// What does an index of a parallel loop cost?
#include "bench.h"

static void empty(void *context, size_t index) {
  (void)context;
  bench_opaque((long)index);
}

static void mark(void *slots, size_t index) { mark_slot((char *)slots + index); }

static dispatch_queue_t queue(void) {
  return dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
}

static long pass_f(void *context, long count) {
  long start = now();
  dispatch_apply_f((size_t)count, queue(), context, empty);
  return now() - start;
}

static long pass_block(void *context, long count) {
  (void)context;
  long start = now();
  dispatch_apply((size_t)count, queue(), ^(size_t index) { bench_opaque((long)index); });
  return now() - start;
}

struct measurement apply_f(long count) {
  struct slots slots = make_slots(count);
  dispatch_apply_f((size_t)count, queue(), slots.bytes, mark);
  verify(take_marked_once(slots), count, "indices visited once");
  return quickest_pass(count, pass_f, NULL);
}

struct measurement apply_block(long count) {
  struct slots slots = make_slots(count);
  dispatch_apply((size_t)count, queue(), ^(size_t index) { mark_slot(slots.bytes + index); });
  verify(take_marked_once(slots), count, "indices visited once");
  return quickest_pass(count, pass_block, NULL);
}
