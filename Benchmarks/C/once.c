// What does dispatch_once_f cost when it is done? The header's inline check would answer without the
// library, so this calls the function, as callers from other languages do.
#include "bench.h"

#undef dispatch_once_f

struct work {
  dispatch_once_t predicate;
  struct counter runs;
};

static long pass(void *context, long count) {
  struct work *work = context;
  long start = now();
  for (long index = 0; index < count; index++) dispatch_once_f(&work->predicate, &work->runs, add_one);
  long time = now() - start;
  verify(work->runs.value, 1, "initializations");
  return time;
}

struct measurement once_f(long count) {
  static struct work work;
  return quickest_pass(count, pass, &work);
}
