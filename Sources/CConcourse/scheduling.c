// Where the engine's threads run, and how: shards, priorities, processors, slack; starting a thread, and what the kernel
// says of one.

#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// A seccomp filter may kill the process for a system call that sets priorities.
static bool has_filter(void) { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0; }

// Written once, while the runtime is made. The table publishes the two words below it.
const uint8_t *concourse_shards;
static uint32_t concourse_shard_processors;
static bool concourse_shards_in_turn;
// ORDERING: relaxed; a thread that reads an old value submits to a shard that others help.
static _Atomic uint32_t concourse_shard_roots[64];
void concourse_set_shards(const uint8_t *shards, uint32_t processors, bool in_turn) {
  concourse_shard_processors = processors;
  concourse_shards_in_turn = in_turn;
  // ORDERING: releasing; pairs with the load in `concourse_adopt_shard`.
  __atomic_store_n(&concourse_shards, shards, __ATOMIC_RELEASE);
}
void concourse_set_shard_roots(uint32_t shard, uint32_t roots) {
  if (shard < 64) atomic_store_explicit(&concourse_shard_roots[shard], roots, memory_order_relaxed);
}
void concourse_find_shard(void) {
  struct concourse_thread *thread = &concourse_thread_local;
  if (thread->worker || thread->delivering) return;
  uint32_t processor = 0;
  if (concourse_shards_in_turn) {
    processor = (uint32_t)syscall(SYS_gettid);
  } else if (has_filter()) {
    // The filter may kill the process for the system call that sched_getcpu can be.
    processor = (uint32_t)((uintptr_t)thread >> 12);
  } else {
    int number = sched_getcpu();
    if (number >= 0) processor = (uint32_t)number;
  }
  uint8_t shard = concourse_shards[processor % concourse_shard_processors];
  thread->roots = atomic_load_explicit(&concourse_shard_roots[shard], memory_order_relaxed);
}

// The number of seccomp filters of a thread, by its status file; 0 if that does not say (before Linux 5.9) or cannot be
// read.
static long filter_count(const char *status) {
  // The number comes behind the groups, of which there may be many.
  char text[16384];
  int file = open(status, O_RDONLY | O_CLOEXEC);
  ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = 0;
  const char name[] = "\nSeccomp_filters:", *line = strstr(text, name);
  return line ? strtol(line + strlen(name), NULL, 10) : 0;
}

// The filter of a container of Docker's, Podman's or Kubernetes' refuses some calls, kills for none, and allows those that
// set priorities. It is one filter, and the container's first process has it, too. If there are more, one of them may be
// that of a sandbox or a service in the container, or of the program that started this one. If the first process has none,
// it is not that of a container.
static bool in_container;
static const char own_status[] = "/proc/thread-self/status";

static bool names_container(void) {
  // Some sandboxes whose filters kill set the variable, too.
  const char *name = getenv("container");
  if (name)
    return strcmp(name, "docker") == 0 || strcmp(name, "podman") == 0 || strcmp(name, "oci") == 0 ||
           strcmp(name, "lxc") == 0;
  return getenv("KUBERNETES_SERVICE_HOST") || access("/.dockerenv", F_OK) == 0 ||
         access("/run/.containerenv", F_OK) == 0;
}

__attribute__((constructor)) static void note_container(void) {
  in_container =
      has_filter() && names_container() && filter_count(own_status) == 1 && filter_count("/proc/1/status") == 1;
}

// Another filter that the program has installed itself may kill.
bool concourse_may_set_priority(void) { return !has_filter() || (in_container && filter_count(own_status) == 1); }

bool concourse_yield(void) {
  if (!in_container && has_filter()) return false;
  sched_yield();
  return true;
}

int concourse_set_nice(int nice) {
  if (!concourse_may_set_priority()) return EPERM;
  if (setpriority(PRIO_PROCESS, 0, nice) != 0) return errno;
  concourse_note_given_nice(nice);
  return 0;
}

int concourse_process_nice(void) {
  return concourse_may_set_priority() ? getpriority(PRIO_PROCESS, (id_t)getpid()) : 0;
}

bool concourse_is_lowered(int nice) { return concourse_may_set_priority() && getpriority(PRIO_PROCESS, 0) > nice; }

// The timer slack and the I/O priority of the process's first thread. The slack of another thread is visible only with
// privilege, so it is noted.
static _Atomic long process_slack;
__attribute__((constructor(101))) static void note_slack(void) {
  // ORDERING: relaxed; the value is the only data.
  atomic_store_explicit(&process_slack, prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), memory_order_relaxed);
}

enum { io_of_thread = 1, io_class_shift = 13, io_best_effort = 2 };

// A thread inherits both from the thread that makes it, which may have had them for its own work alone.
static void adopt_slack_and_io(void) {
  // ORDERING: relaxed; as above.
  long slack = atomic_load_explicit(&process_slack, memory_order_relaxed);
  if (slack > 0 && prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) != slack)
    (void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
  long own = syscall(SYS_ioprio_get, io_of_thread, 0), first = syscall(SYS_ioprio_get, io_of_thread, getpid());
  if (own < 0 || first < 0 || own == first) return;
  // Some kernels say the priority that follows from the nice value in place of 0, which means just that.
  int nice = getpriority(PRIO_PROCESS, (id_t)getpid());
  if (first == (io_best_effort << io_class_shift | (nice + 20) / 5)) first = 0;
  (void)syscall(SYS_ioprio_set, io_of_thread, 0, first);
}

// The processors that the calling thread or the process's first thread may use, or NULL; to be freed. A thread that the
// program has pinned must not pin the pool.
static cpu_set_t *widened_mask(size_t *size, bool *is_wider) {
  // The mask is larger than `cpu_set_t` on machines with more than 1,024 processors.
  for (int processors = 1024; processors <= 1 << 20; processors *= 2) {
    *size = CPU_ALLOC_SIZE(processors);
    cpu_set_t *own = CPU_ALLOC(processors), *both = CPU_ALLOC(processors);
    errno = ENOMEM;
    if (own && both && sched_getaffinity(0, *size, own) == 0 && sched_getaffinity(getpid(), *size, both) == 0) {
      CPU_OR_S(*size, both, both, own);
      *is_wider = !CPU_EQUAL_S(*size, both, own);
      CPU_FREE(own);
      return both;
    }
    int failure = errno;
    CPU_FREE(own);
    CPU_FREE(both);
    if (failure != EINVAL) break;
  }
  return NULL;
}

void concourse_adopt_scheduling(void) {
  // The filters of containers allow all of these calls.
  if (!concourse_may_set_priority()) return;
  adopt_slack_and_io();
  size_t size;
  bool is_wider;
  cpu_set_t *mask = widened_mask(&size, &is_wider);
  if (mask && is_wider) (void)sched_setaffinity(0, size, mask);
  if (mask) CPU_FREE(mask);
  int own = sched_getscheduler(0), first = sched_getscheduler(getpid());
  if (own < 0 || first < 0) return;
  first &= ~SCHED_RESET_ON_FORK;
  if (own == first || (first != SCHED_OTHER && first != SCHED_BATCH && first != SCHED_IDLE)) return;
  struct sched_param none = {0};
  (void)sched_setscheduler(0, first, &none);
}

// In a user namespace of its own (a rootless container) a process has capabilities that the kernel does not accept for
// this. The first one has a number that does not change.
static bool is_in_first_user_namespace(void) {
  struct stat status;
  return stat("/proc/self/ns/user", &status) != 0 || status.st_ino == 0xEFFFFFFDu;
}

bool concourse_may_take_nice(int nice) {
  if (!concourse_may_set_priority()) return false;
  struct rlimit limit;
  if (getrlimit(RLIMIT_NICE, &limit) == 0 && 20 - nice <= (int)(limit.rlim_cur < 40 ? limit.rlim_cur : 40)) return true;
  if (!is_in_first_user_namespace()) return false;
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{0}};
  return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1u << CAP_SYS_NICE));
}

int concourse_set_slice(uint64_t nanoseconds) {
  if (!concourse_may_set_priority()) return EPERM;
  // The kernel's `struct sched_attr`; some C libraries lack it.
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes = {.nice = getpriority(PRIO_PROCESS, 0), .runtime = nanoseconds};
  enum { keep_policy = 8 };
  attributes.size = sizeof attributes;
  attributes.flags = keep_policy;
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) return errno;
  concourse_note_given_slice(nanoseconds);
  return 0;
}

int concourse_affinity_count(void) {
  size_t size;
  bool is_wider;
  cpu_set_t *mask = widened_mask(&size, &is_wider);
  long count = mask ? CPU_COUNT_S(size, mask) : sysconf(_SC_NPROCESSORS_ONLN);
  if (mask) CPU_FREE(mask);
  return count > 0 ? (int)count : 1;
}

int concourse_allowed_processors(int *numbers, int most) {
  size_t size;
  bool is_wider;
  cpu_set_t *mask = widened_mask(&size, &is_wider);
  if (!mask) return 0;
  int count = 0;
  for (int number = 0; number < (int)(size * 8) && count < most; number++)
    if (CPU_ISSET_S(number, size, mask)) numbers[count++] = number;
  CPU_FREE(mask);
  return count;
}

int concourse_spawn(void *(*entry)(void *), void *argument) {
  pthread_attr_t attributes;
  int failure = pthread_attr_init(&attributes);
  if (failure != 0) return failure;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // At least 512 KiB: deep closures overflow the small default stacks of musl and of a tiny RLIMIT_STACK.
  size_t stack = 0;
  const size_t least = 512 * 1024;
  if (pthread_attr_getstacksize(&attributes, &stack) != 0 || stack < least)
    pthread_attr_setstacksize(&attributes, least);

  if (concourse_gettid() == (uint32_t)getpid()) note_slack();
  sigset_t blocked, previous;
  sigfillset(&blocked);
  const int open[] = {SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGSEGV, SIGABRT, SIGPIPE, SIGPROF, SIGSYS};
  for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) sigdelset(&blocked, open[i]);
  concourse_signal_exempt(&blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, &previous);
  pthread_t thread;
  failure = pthread_create(&thread, &attributes, entry, argument);
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pthread_attr_destroy(&attributes);
  return failure;
}

char concourse_thread_state(uint32_t tid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = 0;
  // The name in parentheses may contain any byte, so the state is searched after the last ')'.
  const char *end = strrchr(text, ')');
  return end != NULL && end[1] == ' ' ? end[2] : 0;
}

uint64_t concourse_processor_time(uint32_t tid) {
  // The kernel's clock of a thread: the inverted id, then "per thread" and "as scheduled". It is read by a system call.
  clockid_t clock = (clockid_t)(~tid << 3 | 6);
  struct timespec time;
  if (tid == 0 || has_filter() || clock_gettime(clock, &time) != 0) return 0;
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
