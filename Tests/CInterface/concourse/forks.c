// What a child may do that was forked while the runtime had threads: it may leave `sync`, and release objects. What would
// wait for a thread of the parent traps.
// Statements: S148

#include "check.h"

#include <concourse/inspection.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static dispatch_queue_t queue;
static event begun, go_on;

static void check_child(pid_t child, const char *text) {
  if (child == 0) _exit(0);
  int status = -1;
  check_equal(waitpid(child, &status, 0), child);
  check_that(status == 0, text, __FILE__, __LINE__);
}

// The child leaves the queue to an item that no thread of it runs.
static void leave_sync(void) {
  __block int ran = 0;
  __block pid_t child = -1;
  dispatch_sync(queue, ^{
    dispatch_async_f(queue, &ran, count_up);
    child = fork();
  });
  check_child(child, "leaves sync");
  dispatch_queue_t concurrent = dispatch_queue_create("concurrent", DISPATCH_QUEUE_CONCURRENT);
  dispatch_sync(concurrent, ^{
    dispatch_barrier_async_f(concurrent, &ran, count_up);
    child = fork();
  });
  check_child(child, "leaves sync as the last reader");
  dispatch_workloop_t workloop = dispatch_workloop_create("workloop");
  dispatch_async_and_wait(workloop, ^{
    dispatch_async_f(workloop, &ran, count_up);
    child = fork();
  });
  check_child(child, "leaves a workloop");
  drain(queue);
  dispatch_barrier_sync(concurrent, ^{});
  dispatch_async_and_wait(workloop, ^{});
  check_equal(count_of(&ran), 3);
  dispatch_release(workloop);
  dispatch_release(concurrent);
}

static char key;
static void released(void *context) { event_happens(context); }

// The handlers of these releases would need a worker. The parent has one.
static void release_objects(void) {
  event done;
  event *end = &done;
  event_init(end);
  dispatch_queue_t specific = dispatch_queue_create("specific", NULL);
  dispatch_queue_set_specific(specific, &key, end, released);
  dispatch_queue_t finalized = dispatch_queue_create("finalized", NULL);
  dispatch_set_context(finalized, end);
  dispatch_set_finalizer_f(finalized, released);
  dispatch_data_t data = dispatch_data_create("data", 4, NULL, ^{ event_happens(end); });
  int file = open("/dev/null", O_WRONLY);
  dispatch_io_t channel = dispatch_io_create(DISPATCH_IO_STREAM, file, queue, ^(int error) {
    check_equal(error, 0);
    event_happens(end);
  });
  pid_t child = fork();
  dispatch_release(specific);
  dispatch_release(finalized);
  dispatch_release(data);
  dispatch_release(channel);
  check_child(child, "releases objects");
  for (int i = 0; i < 4; i++) event_wait(end);
  close(file);
}

static dispatch_group_t group;
static dispatch_once_t predicate;
static void wait_for_group(void) { dispatch_group_wait(group, DISPATCH_TIME_FOREVER); }
static void wait_for_once(void) { dispatch_once_f(&predicate, NULL, nothing); }
static void block_in_item(void *context) {
  (void)context;
  event_happens(&begun);
  event_wait(&go_on);
}

static void waits(void) {
  group = dispatch_group_create();
  dispatch_group_async_f(group, queue, NULL, block_in_item);
  event_wait(&begun);
  dies_saying(wait_for_group, "wait() on a group with items in a forked child");
  // A time-out may pass: a thread of the child's own may leave the group.
  pid_t child = fork();
  if (child == 0) _exit(dispatch_group_wait(group, dispatch_time(0, NSEC_PER_MSEC)) == 0);
  check_child(child, "waits with a time-out");
  event_happens(&go_on);
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  dispatch_release(group);

  dispatch_async(queue, ^{ dispatch_once_f(&predicate, NULL, block_in_item); });
  event_wait(&begun);
  dies_saying(wait_for_once, "once, whose body a thread of the parent runs, in a forked child");
  event_happens(&go_on);
  drain(queue);
}

static pthread_t caller;
static event forked;
static void fork_in_loop(void *unused, size_t index) {
  (void)unused;
  (void)index;
  static atomic_int begun_elsewhere, has_forked;
  if (!pthread_equal(pthread_self(), caller)) {
    // One iteration is another thread's while the caller forks.
    if (atomic_exchange(&begun_elsewhere, 1) == 0) event_happens(&begun);
    while (!atomic_load(&has_forked)) event_wait(&forked);
    event_happens(&forked);
  } else if (!atomic_load(&has_forked)) {
    event_wait(&begun);
    pid_t child = fork();
    atomic_store(&has_forked, 1);
    if (child == 0) return;
    event_happens(&forked);
    int status = 0;
    check_equal(waitpid(child, &status, 0), child);
    check(WIFSIGNALED(status) && is_fatal(WTERMSIG(status)));
  }
}

int main(void) {
  event_init(&begun);
  event_init(&go_on);
  event_init(&forked);
  queue = dispatch_queue_create("queue", NULL);
  dispatch_async_f(queue, NULL, nothing);
  drain(queue);
  leave_sync();
  release_objects();
  waits();
  caller = pthread_self();
  // On one processor, a loop has no other thread.
  struct concourse_pool pool = {.size = sizeof pool};
  concourse_inspect_pool(&pool);
  if (pool.width > 1) dispatch_apply_f(64, DISPATCH_APPLY_AUTO, NULL, fork_in_loop);
  dispatch_release(queue);
  return finish();
}
