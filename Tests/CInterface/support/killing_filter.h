// A filter that kills the process for system calls that set or ask for priorities or yield, as some services have and
// some programs install for themselves.

#ifndef KILLING_FILTER_H
#define KILLING_FILTER_H

#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

UNUSED static void install_filter(struct sock_filter *instructions, size_t count) {
  struct sock_fprog program = {.len = (unsigned short)count, .filter = instructions};
  check_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  check_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

// In a container the runtime yields without a look for a filter that came later, which therefore must allow that.
UNUSED static void install_killing_filter(bool allows_yield) {
#define KILLS(call, rest) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, rest, 0)
  struct sock_filter instructions[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      KILLS(setpriority, 6),
      KILLS(getpriority, 5),
      KILLS(sched_setattr, 4),
      KILLS(sched_yield, allows_yield ? 2 : 3),
      KILLS(ioprio_set, 2),
      KILLS(sched_setaffinity, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  install_filter(instructions, sizeof instructions / sizeof *instructions);
}

#endif
