// Two loops on one serial queue, on two of them, and on one concurrent queue.

#include "listing.h"
#include <stdatomic.h>

struct record {
  _Atomic int count;
  int numbers[20];
};

static void add(struct record *record, int number) { record->numbers[record->count++] = number; }

static void submit_loop(dispatch_queue_t queue, struct record *record, int first) {
  dispatch_async(queue, ^{
    for (int number = first; number < first + 10; number++) add(record, number);
  });
}

// All twenty numbers are there, and those of either loop in their order.
static void check_complete(const struct record *record, const char *where) {
  CHECK(record->count == 20, "%s: %d numbers instead of 20", where, record->count);
  int next[] = {1, 11};
  for (int place = 0; place < 20; place++) {
    int number = record->numbers[place];
    int loop = number > 10;
    CHECK(number == next[loop], "%s: %d where %d was to come", where, number, next[loop]);
    next[loop] += 1;
  }
  printf("%s:", where);
  for (int place = 0; place < 20; place++) printf(" %d", record->numbers[place]);
  putchar('\n');
}

int main(void) {
  struct record *record = calloc(3, sizeof *record);

  dispatch_queue_t first = dispatch_queue_create("org.concourse.guide.first", NULL);
  submit_loop(first, &record[0], 1);
  submit_loop(first, &record[0], 11);
  dispatch_sync(first, ^{});
  check_complete(&record[0], "one serial queue");
  for (int place = 0; place < 20; place++) {
    CHECK(record[0].numbers[place] == place + 1, "one serial queue: the loops were mixed");
  }

  dispatch_queue_t second = dispatch_queue_create("org.concourse.guide.second", NULL);
  submit_loop(first, &record[1], 1);
  submit_loop(second, &record[1], 11);
  dispatch_sync(first, ^{});
  dispatch_sync(second, ^{});
  check_complete(&record[1], "two serial queues");

  dispatch_queue_t concurrent =
    dispatch_queue_create("org.concourse.guide.concurrent", DISPATCH_QUEUE_CONCURRENT);
  submit_loop(concurrent, &record[2], 1);
  submit_loop(concurrent, &record[2], 11);
  // A barrier waits for all that came before it.
  dispatch_barrier_sync(concurrent, ^{});
  check_complete(&record[2], "one concurrent queue");

  dispatch_release(first);
  dispatch_release(second);
  dispatch_release(concurrent);
  free(record);
  return 0;
}
