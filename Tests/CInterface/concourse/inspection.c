// What a process learns of its own queues and threads: concourse/inspection.h.

#include "check.h"

#include <concourse/inspection.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static event began, release_item;

static void wait_for_release(void *context) {
  (void)context;
  event_happens(&began);
  event_wait(&release_item);
}

// --- Structures of other sizes ---

static void sizes(void) {
  struct {
    struct concourse_pool pool;
    uint64_t beyond[2];
  } newer;
  memset(&newer, 0xAA, sizeof newer);
  newer.pool.size = sizeof newer;
  concourse_inspect_pool(&newer.pool);
  check_equal(newer.pool.size, sizeof newer);
  check_equal(newer.pool.limit, 512);
  // What this library does not know is 0.
  check_equal(newer.beyond[0], 0);
  check_equal(newer.beyond[1], 0);

  struct {
    size_t size;
    int64_t width;
    uint64_t beyond;
  } older = {16, -7, 99};
  concourse_inspect_pool((struct concourse_pool *)(void *)&older);
  check_equal(older.width, newer.pool.width);
  check_equal(older.beyond, 99);
}

static void no_size(void) {
  struct concourse_pool pool = {0};
  concourse_inspect_pool(&pool);
}

// --- Snapshots ---

static struct concourse_queue *find(struct concourse_queue *queues, size_t count, const char *label) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(queues[i].label, label) == 0) return &queues[i];
  return NULL;
}

static void lasting_queues(void) {
  size_t count = concourse_inspect_queues(NULL, 0);
  check_equal(count, 6);
  struct concourse_queue queues[8] = {{.size = sizeof queues[0]}};
  check_equal(concourse_inspect_queues(queues, 8), 6);
  struct concourse_queue *main_queue = find(queues, 6, "com.apple.main-thread");
  check(main_queue != NULL && main_queue->kind == CONCOURSE_QUEUE_MAIN && main_queue->waiting == -1);
  check(find(queues, 6, "com.apple.root.background-qos") != NULL);
  check_equal(queues[7].size, 0);
}

static void work_after_blocked(void *queue) { dispatch_sync_f((dispatch_queue_t)queue, NULL, nothing); }

static void blocked_threads(void) {
  // Longer than there is room for, and cut off before a character of two bytes.
  char label[200];
  memset(label, 'x', sizeof label);
  memcpy(label + 126, "\xC3\xA9", 2);
  label[199] = 0;
  dispatch_queue_t queue = dispatch_queue_create(label, NULL);
  dispatch_async_f(queue, NULL, wait_for_release);
  event_wait(&began);
  dispatch_group_t group = dispatch_group_create();
  dispatch_group_async_f(group, dispatch_get_global_queue(0, 0), queue, work_after_blocked);
  struct concourse_blocked_thread threads[2];
  memset(threads, 0, sizeof threads);
  threads[0].size = sizeof threads[0];
  while (concourse_inspect_blocked_threads(threads, 2) == 0) sched_yield();
  check_equal(threads[0].reason, CONCOURSE_BLOCKED_TURN);
  check_equal(strlen(threads[0].label), 126);
  check(threads[0].queue == (uint64_t)(uintptr_t)queue && threads[0].since > 0 && threads[0].thread > 0);
  struct concourse_pool pool = {.size = sizeof pool};
  // A thread is entered as blocked between two sleeps, so the pool counts it as waiting a moment later.
  do concourse_inspect_pool(&pool);
  while (pool.waiting == 0 && sched_yield() == 0);
  // The holder sleeps in a call of its own, which counts as active until work waits.
  check(pool.waiting >= 1 && pool.threads >= 2 && pool.waiting + pool.stuck == pool.blocked);
  event_happens(&release_item);
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  check_equal(concourse_inspect_blocked_threads(NULL, 0), 0);
}

// --- Statistics ---

static void statistics(void) {
  concourse_statistics_t stream = concourse_statistics_begin(0);
  check(stream != NULL);
  struct concourse_queue_statistics queue = {.size = sizeof queue};
  check(concourse_statistics_queue(stream, 0, &queue) == -1 && errno == EINVAL);
  dispatch_queue_t counted = dispatch_queue_create("counted", NULL);
  for (int i = 0; i < 100; i++) dispatch_async_f(counted, NULL, nothing);
  uint64_t started = 0, ended = 0, waits = 0, end = 0;
  while (ended < 100) {
    struct concourse_statistics interval = {.size = sizeof interval};
    if (concourse_statistics_next(stream, &interval) != 0) break;
    check(interval.end >= interval.start && (end == 0 || interval.start == end));
    check_equal(interval.lost, 0);
    end = interval.end;
    for (size_t i = 0; i < interval.queues; i++) {
      check_equal(concourse_statistics_queue(stream, i, &queue), 0);
      if (strcmp(queue.label, "counted") != 0) continue;
      started += queue.started;
      ended += queue.ended;
      waits += queue.wait.count;
      check(queue.kind == CONCOURSE_QUEUE_SERIAL && queue.id == (uint64_t)(uintptr_t)counted);
      check(queue.run.median <= queue.run.percentile_99 && queue.run.percentile_99 <= queue.run.longest);
    }
  }
  check(started == 100 && ended == 100 && waits == 100);
  struct concourse_queue queues[16];
  memset(queues, 0, sizeof queues);
  queues[0].size = sizeof queues[0];
  size_t count = concourse_inspect_queues(queues, 16);
  struct concourse_queue *known = find(queues, count, "counted");
  check(known != NULL && known->waiting == 0 && known->running == 0);
  // An overcommitting global queue is known once it has had an item, which runs on the global queue of its class.
  const char *overcommit = "com.apple.root.utility-qos.overcommit";
  check(find(queues, count, overcommit) == NULL);
  event_init(&began);
  dispatch_async_f(dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_LOW, 2), NULL, wait_for_release);
  event_wait(&began);
  count = concourse_inspect_queues(queues, 16);
  known = find(queues, count, overcommit);
  check(known != NULL && known->kind == CONCOURSE_QUEUE_GLOBAL && known->waiting == 0);
  check(known != NULL && known->id == (uint64_t)(uintptr_t)dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_LOW, 2));
  known = find(queues, count, "com.apple.root.utility-qos");
  check(known != NULL && known->running == 1);
  event_happens(&release_item);
  concourse_statistics_release(stream);
  concourse_statistics_release(NULL);
}

static event returned;

static void *wait_for_interval(void *stream) {
  struct concourse_statistics interval = {.size = sizeof interval};
  int result = concourse_statistics_next((concourse_statistics_t)stream, &interval);
  int error = result == -1 ? errno : 0;
  event_happens(&returned);
  return (void *)(intptr_t)error;
}

static void ended_stream(void) {
  concourse_statistics_t stream = concourse_statistics_begin(UINT64_MAX);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, wait_for_interval, stream);
  // The second one is refused, while the first one waits.
  event_wait(&returned);
  concourse_statistics_end(stream);
  void *results[2];
  for (int i = 0; i < 2; i++) pthread_join(threads[i], &results[i]);
  check_equal((intptr_t)results[0] + (intptr_t)results[1], EBUSY + ECANCELED);
  check((intptr_t)results[0] == EBUSY || (intptr_t)results[1] == EBUSY);
  concourse_statistics_release(stream);
}

static void forked_child(void) {
  pid_t child = fork();
  if (child == 0) {
    struct concourse_pool pool = {.size = sizeof pool};
    concourse_inspect_pool(&pool);
    int failed = pool.threads != 0;
    if (concourse_statistics_begin(0) != NULL || errno != ENOTSUP) failed |= 2;
    if (concourse_inspect_blocked_threads(NULL, 0) != 0) failed |= 4;
    _exit(failed);
  }
  int status = -1;
  waitpid(child, &status, 0);
  check_equal(status, 0);
}

int main(void) {
  event_init(&began);
  event_init(&release_item);
  event_init(&returned);
  sizes();
  dies_saying(no_size, "concourse_inspect_pool: the structure says that its size is 0; set its first field to its size [C726]\n");
  lasting_queues();
  blocked_threads();
  statistics();
  ended_stream();
  forked_child();
  return finish();
}
