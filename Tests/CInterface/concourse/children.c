// A process that an item starts has the signal mask with which the process began, and the nice value, the time slice, the
// timer slack and the I/O priority of its first thread, as far as the system allows that.

#include "check.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

struct facts {
  uint64_t blocked;
  int nice;
  uint64_t slice;
  long slack, io;
};

static uint64_t mask(void) {
  sigset_t set;
  uint64_t found = 0;
  sigprocmask(SIG_BLOCK, NULL, &set);
  for (int i = 1; i <= 64; i++)
    if (sigismember(&set, i) == 1) found |= 1ull << (i - 1);
  return found;
}

static struct facts facts_here(void) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes = {0};
  syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0);
  return (struct facts){.blocked = mask(),
                        .nice = getpriority(PRIO_PROCESS, 0),
                        .slice = attributes.runtime,
                        .slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0),
                        .io = syscall(SYS_ioprio_get, 1, 0)};
}

enum way { SPAWN, SPAWN_BY_NAME, FORK, WAYS };

static posix_spawnattr_t *attributes;

// The facts of this program as it starts again.
static struct facts facts_of_child(enum way way) {
  int ends[2];
  check_equal(pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  char self[] = "/proc/self/exe", asked[] = "facts";
  char *const arguments[] = {self, asked, NULL};
  pid_t child = -1;
  if (way == SPAWN) check_equal(posix_spawn(&child, self, &actions, attributes, arguments, environ), 0);
  if (way == SPAWN_BY_NAME) check_equal(posix_spawnp(&child, self, &actions, attributes, arguments, environ), 0);
  if (way == FORK && (child = fork()) == 0) {
    dup2(ends[1], 1);
    execv(self, arguments);
    _exit(1);
  }
  close(ends[1]);
  struct facts found = {0};
  check_equal(read(ends[0], &found, sizeof found), sizeof found);
  close(ends[0]);
  int status = -1;
  check_equal(waitpid(child, &status, 0), child);
  check_equal(status, 0);
  posix_spawn_file_actions_destroy(&actions);
  return found;
}

// Whether a lowered thread can be raised again.
static bool may_raise;

static void find_rights(void) {
  pid_t child = fork();
  if (child == 0) _exit(setpriority(PRIO_PROCESS, 0, 1) != 0 || setpriority(PRIO_PROCESS, 0, 0) != 0);
  int status = -1;
  check_equal(waitpid(child, &status, 0), child);
  may_raise = status == 0;
}

static void compare(struct facts got, struct facts expected, bool nice_too) {
  check_equal(got.blocked, expected.blocked);
  check_equal(got.slice, expected.slice);
  check_equal(got.slack, expected.slack);
  check_equal(got.io, expected.io);
  if (nice_too) check_equal(got.nice, expected.nice);
}

static void run_on(long qos, void (^item)(void)) {
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  dispatch_async(dispatch_get_global_queue(qos, 0), ^{
    item();
    dispatch_semaphore_signal(done);
  });
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  dispatch_release(done);
}

static const long classes[] = {USER_INTERACTIVE, USER_INITIATED, NORMAL, UTILITY, BACKGROUND};

static uint64_t mask_at_start;

static void test_facts(void) {
  for (int way = 0; way < WAYS; way++) {
    struct facts expected = facts_of_child(way);
    expected.blocked = mask_at_start;
    for (int i = 0; i < 5; i++) {
      run_on(classes[i], ^{
        struct facts before = facts_here();
        check(before.blocked & 1ull << (SIGTERM - 1));
        compare(facts_of_child(way), expected, classes[i] > UTILITY || may_raise);
        // The worker has what it had.
        compare(facts_here(), before, true);
      });
    }
  }
}

// SIGTERM ends a child that waits.
static void test_termination(void) {
  for (int i = 0; i < 5; i++) {
    run_on(classes[i], ^{
      char shell[] = "sh", option[] = "-c", script[] = "exec sleep 20";
      char *const arguments[] = {shell, option, script, NULL};
      pid_t child = -1;
      check_equal(posix_spawnp(&child, shell, NULL, NULL, arguments, environ), 0);
      kill(child, SIGTERM);
      int status = 0;
      check_equal(waitpid(child, &status, 0), child);
      check(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    });
  }
}

// What the item itself sets is kept.
static void test_own_settings(void) {
  run_on(NORMAL, ^{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    posix_spawnattr_t own;
    posix_spawnattr_init(&own);
    posix_spawnattr_setsigmask(&own, &set);
    posix_spawnattr_setflags(&own, POSIX_SPAWN_SETSIGMASK);
    attributes = &own;
    check_equal(facts_of_child(SPAWN).blocked, 1ull << (SIGUSR2 - 1));
    check_equal(facts_of_child(SPAWN_BY_NAME).blocked, 1ull << (SIGUSR2 - 1));
    attributes = NULL;
    posix_spawnattr_destroy(&own);
    sigprocmask(SIG_SETMASK, &set, &before);
    for (int way = 0; way < WAYS; way++) check_equal(facts_of_child(way).blocked, 1ull << (SIGUSR2 - 1));
    sigprocmask(SIG_SETMASK, &before, NULL);
  });
}

// The first thread's settings are the process's, whichever thread makes the pool's first.
static void *make_pool(void *none) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  prctl(PR_SET_TIMERSLACK, 900000000ul, 0, 0, 0);
  syscall(SYS_ioprio_set, 1, 0, 3 << 13);
  for (int i = 0; i < 5; i++) run_on(classes[i], ^{});
  return none;
}

int main(int count, char **arguments) {
  (void)arguments;
  if (count > 1) {
    struct facts facts = facts_here();
    return write(1, &facts, sizeof facts) == sizeof facts ? 0 : 1;
  }
  mask_at_start = mask();
  find_rights();
  pthread_t maker;
  pthread_create(&maker, NULL, make_pool, NULL);
  pthread_join(maker, NULL);
  test_facts();
  test_termination();
  test_own_settings();
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  test_facts();
  return finish();
}
