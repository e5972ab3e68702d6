// Under a filter that kills the process for system calls that set or ask for priorities or yield, as some services have
// and some programs install for themselves, all queues still work: if it was there first, and if it comes later, with a
// recording, too.

#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void install_filter(void) {
#define KILLS(call, rest) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, rest, 0)
  struct sock_filter instructions[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      KILLS(setpriority, 6),
      KILLS(getpriority, 5),
      KILLS(sched_setattr, 4),
      KILLS(sched_yield, 3),
      KILLS(ioprio_set, 2),
      KILLS(sched_setaffinity, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog program = {.len = sizeof instructions / sizeof *instructions, .filter = instructions};
  check_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  check_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

// Items of every class, hops between threads, and a process that an item starts.
static void work(void) {
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  const long classes[] = {USER_INTERACTIVE, USER_INITIATED, NORMAL, UTILITY, BACKGROUND};
  for (int i = 0; i < 5; i++) {
    for (int round = 0; round < 100; round++) {
      dispatch_async(dispatch_get_global_queue(classes[i], 0), ^{
        dispatch_semaphore_signal(done);
      });
      dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
    }
    dispatch_async(dispatch_get_global_queue(classes[i], 0), ^{
      pid_t child = fork();
      if (child == 0) _exit(0);
      int status = -1;
      check_equal(waitpid(child, &status, 0), child);
      check_equal(status, 0);
      dispatch_semaphore_signal(done);
    });
    dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  }
  dispatch_release(done);
}

static void check_in_child(bool comes_first, bool records) {
  pid_t child = fork();
  if (child == 0) {
    // The runtime, which reads this, is made below.
    if (records) setenv("CONCOURSE_RECORDER", "1000", 1);
    setenv("CONCOURSE_RECORDER_DIR", "/tmp", 1);
    if (!comes_first) work();
    install_filter();
    work();
    _exit(checks_failed);
  }
  int status = -1;
  check_equal(waitpid(child, &status, 0), child);
  check_equal(status, 0);
  char recording[64];
  snprintf(recording, sizeof recording, "/tmp/concourse-%d.recording", child);
  check_equal(unlink(recording), records ? 0 : -1);
}

int main(void) {
  for (int records = 0; records < 2; records++) {
    check_in_child(true, records);
    check_in_child(false, records);
  }
  return finish();
}
