// What does it cost to enter a queue that another thread keeps entering?
#include "bench.h"

struct work {
  dispatch_queue_t queue;
  struct counter entries;
  long share, previous, handovers;
};

struct visit {
  struct work *work;
  int thread;
};

static void enter(void *context) {
  struct visit *visit = context;
  visit->work->entries.value++;
  visit->work->handovers += visit->work->previous != visit->thread;
  visit->work->previous = visit->thread;
}

static void body(void *context, int thread) {
  struct work *work = context;
  struct visit visit = {work, thread};
  for (long index = 0; index < work->share; index++) dispatch_sync_f(work->queue, &visit, enter);
}

static long pass(void *context, long count) {
  struct work *work = context;
  work->share = count / 2;
  // On a busy machine one thread may be done before the other gets its core; that says nothing.
  for (int attempt = 0; attempt < 20; attempt++) {
    work->entries.value = work->handovers = 0;
    work->previous = -1;
    long time = time_two_threads(body, work);
    verify(work->entries.value, count, "entries that excluded each other");
    // Threads that contend hand over at each tenth entry and oftener; one after the other, twice. A single core
    // cannot do better.
    if (work->handovers > count / 100 || bench_core_count() == 1) return time;
  }
  verify(0, 1, "passes in which the threads met");
  return 0;
}

struct measurement sync_f_two_threads(long count) {
  struct work work = {.queue = dispatch_queue_create("serial", NULL)};
  return quickest_pass(count, pass, &work);
}
