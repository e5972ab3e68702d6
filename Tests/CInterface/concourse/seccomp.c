// Under a filter that kills the process for system calls that set priorities, as some services have, the default queues
// still work.

#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int main(void) {
  struct sock_filter instructions[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_setpriority, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sched_setattr, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof instructions / sizeof *instructions, .filter = instructions};
  check_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  check_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  const long classes[] = {USER_INTERACTIVE, USER_INITIATED, NORMAL};
  for (int i = 0; i < 3; i++) {
    dispatch_async(dispatch_get_global_queue(classes[i], 0), ^{
      dispatch_semaphore_signal(done);
    });
    dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  }
  dispatch_release(done);
  return finish();
}
