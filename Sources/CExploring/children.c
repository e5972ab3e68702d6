// Child processes run in real time. So that their moments do not decide, what comes from them is taken when no thread of the
// program can go on, and then not before they have come to rest: they have ended, or wait.

#include "exploring.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

bool explore_has_children(bool *ended) {
  siginfo_t information;
  memset(&information, 0, sizeof information);
  long result = explore_system(SYS_waitid, P_ALL, 0, (long)&information, WEXITED | WNOHANG | WNOWAIT, 0, 0);
  *ended = result == 0 && information.si_pid != 0;
  return result == 0;
}

size_t explore_read_file(const char *path, char *text, size_t size) {
  int file = (int)SYSTEM4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  long length = file < 0 ? 0 : SYSTEM3(SYS_read, file, text, size - 1);
  if (file >= 0) SYSTEM1(SYS_close, file);
  if (length < 0) length = 0;
  text[length] = 0;
  return (size_t)length;
}

/// Whether the process only sleeps for a time. Looks at a process that sleeps for long are few.
static bool pauses(long process) {
  static uint32_t looks;
  enum { MOST = 1000 };
  char path[64], text[64];
  snprintf(path, sizeof path, "/proc/%ld/syscall", process);
  if (looks >= MOST || explore_read_file(path, text, sizeof text) == 0) return false;
  long number = strtol(text, NULL, 10);
  if (number != SYS_clock_nanosleep && number != SYS_nanosleep) return false;
  looks++;
  return true;
}

static bool rests(long process) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%ld/stat", process);
  if (explore_read_file(path, text, sizeof text) == 0) return true;
  const char *end = strrchr(text, ')');
  if (!end || end[1] != ' ' || end[2] == 'Z' || end[2] == 'X' || end[2] == 'T') return true;
  return end[2] == 'S' && !pauses(process);
}

/// Whether the children that a thread has made rest, and theirs.
static bool children_rest(long process, long thread, int depth) {
  enum { DEEPEST = 3 };
  char path[80], text[1024];
  snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", process, thread);
  if (explore_read_file(path, text, sizeof text) == 0) return true;
  for (char *next = text;;) {
    char *end;
    long child = strtol(next, &end, 10);
    if (end == next) return true;
    next = end;
    if (!rests(child) || (depth < DEEPEST && !children_rest(child, child, depth + 1))) return false;
  }
}

void explore_await_rest(void) {
  // Twice in a row: between two sleeps a process also runs.
  enum { LOOKS = 2, MOST = 2000 };
  const long process = SYSTEM1(SYS_getpid, 0);
  for (int i = 0, resting = 0; i < MOST && resting < LOOKS; i++) {
    bool all = true;
    for (uint32_t k = 0; k < explored_live_count && all; k++)
      all = children_rest(process, (long)explored_live[k]->id, 0);
    resting = all ? resting + 1 : 0;
    struct timespec moment = {.tv_nsec = 1000000};
    SYSTEM3(SYS_nanosleep, &moment, NULL, 0);
  }
}

void explore_settle(void) {
  bool ended;
  if (!explore_has_children(&ended)) return;
  // ORDERING: relaxed, both; the watchdog looks again and again.
  __atomic_store_n(&explored_waits, true, __ATOMIC_RELAXED);
  explore_await_rest();
  __atomic_store_n(&explored_waits, false, __ATOMIC_RELAXED);
}

// MARK: Calls that wait for a child

static pid_t await_child(struct explored *self, pid_t child, int *status, int options, void *usage, const void *place) {
  explore_point(self, OP_WAITPID, NULL, place);
  for (;;) {
    explore_settle();
    long found = explore_system(SYS_wait4, child, (long)status, options | WNOHANG, (long)usage, 0, 0);
    if (found != 0 || options & WNOHANG) return (pid_t)explore_result(found);
    int result = explore_wait_outside(self, OP_WAITPID, WAKES_CHILD, 0, NEVER, place);
    explore_test_cancel(self);
    if (result == EINTR && !explore_goes_on(self)) return (pid_t)explore_result(-EINTR);
  }
}

INTERPOSED(pid_t, waitpid, pid_t child, int *status, int options) {
  struct explored *self = explore_current();
  return self ? await_child(self, child, status, options, NULL, HERE) : REAL(waitpid)(child, status, options);
}

INTERPOSED(pid_t, wait4, pid_t child, int *status, int options, struct rusage *usage) {
  struct explored *self = explore_current();
  return self ? await_child(self, child, status, options, usage, HERE) : REAL(wait4)(child, status, options, usage);
}

INTERPOSED(pid_t, wait, int *status) {
  struct explored *self = explore_current();
  return self ? await_child(self, -1, status, 0, NULL, HERE) : REAL(wait)(status);
}

INTERPOSED(int, waitid, idtype_t type, id_t child, siginfo_t *information, int options) {
  struct explored *self = explore_current();
  if (!self || options & WNOHANG) return REAL(waitid)(type, child, information, options);
  explore_point(self, OP_WAITPID, NULL, HERE);
  siginfo_t unused;
  if (!information) information = &unused;
  for (;;) {
    memset(information, 0, sizeof *information);
    if (REAL(waitid)(type, child, information, options | WNOHANG) != 0) return -1;
    if (information->si_pid != 0) return 0;
    bool is_ended = explore_wait_outside(self, OP_WAITPID, WAKES_CHILD, 0, NEVER, HERE) == EINTR;
    explore_test_cancel(self);
    if (is_ended && !explore_goes_on(self)) return (int)explore_result(-EINTR);
  }
}
