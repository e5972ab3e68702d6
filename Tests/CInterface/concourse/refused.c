// The system refuses all threads while work is submitted, and grants them later. A thread that waits asks for them.
// Statements: S143

#include "check.h"

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rlimit limit;

static void allow(rlim_t threads) {
  limit.rlim_cur = threads;
  if (setrlimit(RLIMIT_NPROC, &limit) != 0) _exit(2);
}

static const dispatch_time_t patience = 100 * NSEC_PER_SEC;

static void semaphore(dispatch_queue_t queue) {
  dispatch_semaphore_t signalled = dispatch_semaphore_create(0);
  dispatch_async(queue, ^{ dispatch_semaphore_signal(signalled); });
  allow(limit.rlim_max);
  _exit(dispatch_semaphore_wait(signalled, dispatch_time(0, patience)) != 0);
}

static void group(dispatch_queue_t queue) {
  dispatch_group_t group = dispatch_group_create();
  dispatch_group_async(group, queue, ^{});
  allow(limit.rlim_max);
  _exit(dispatch_group_wait(group, DISPATCH_TIME_FOREVER) != 0);
}

static void block(dispatch_queue_t queue) {
  dispatch_block_t item = dispatch_block_create(0, ^{});
  dispatch_async(queue, item);
  allow(limit.rlim_max);
  _exit(dispatch_block_wait(item, dispatch_time(0, patience)) != 0);
}

static void delayed(dispatch_queue_t queue) {
  dispatch_semaphore_t signalled = dispatch_semaphore_create(0);
  dispatch_after(dispatch_time(0, NSEC_PER_MSEC), queue, ^{ dispatch_semaphore_signal(signalled); });
  allow(limit.rlim_max);
  _exit(dispatch_semaphore_wait(signalled, DISPATCH_TIME_FOREVER) != 0);
}

static void main_queue(dispatch_queue_t queue) {
  dispatch_async(queue, ^{ dispatch_async(dispatch_get_main_queue(), ^{ _exit(0); }); });
  allow(limit.rlim_max);
  dispatch_main();
}

// A time-out passes although no thread is ever granted.
static void timeout(dispatch_queue_t queue) {
  dispatch_semaphore_t never = dispatch_semaphore_create(0);
  dispatch_group_t group = dispatch_group_create();
  dispatch_async(queue, ^{ dispatch_semaphore_signal(never); });
  dispatch_group_async(group, queue, ^{});
  bool is_in_time = dispatch_semaphore_wait(never, dispatch_time(0, 20 * NSEC_PER_MSEC)) == 0;
  _exit(is_in_time || dispatch_group_wait(group, dispatch_walltime(NULL, 20 * NSEC_PER_MSEC)) == 0);
}

static int status_of(void (*part)(dispatch_queue_t)) {
  // Before the process has threads, so the child may have some.
  pid_t child = fork();
  if (child == 0) {
    alarm(120);
    // A user who may have no second thread.
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(54321) != 0 || setuid(54321) != 0)) _exit(2);
    if (getrlimit(RLIMIT_NPROC, &limit) != 0) _exit(2);
    allow(1);
    part(dispatch_queue_create("queue", NULL));
  }
  int status = -1;
  check_equal(waitpid(child, &status, 0), child);
  return status;
}

int main(void) {
  check_equal(status_of(semaphore), 0);
  check_equal(status_of(group), 0);
  check_equal(status_of(block), 0);
  check_equal(status_of(delayed), 0);
  check_equal(status_of(main_queue), 0);
  check_equal(status_of(timeout), 0);
  return finish();
}
