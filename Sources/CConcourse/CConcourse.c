#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

__thread struct concourse_thread concourse_thread_local;

void *concourse_root_table;
void concourse_set_roots(void *table) { concourse_root_table = table; }

void *concourse_blocked_threads;
void concourse_set_blocked_threads(void *lists) { concourse_blocked_threads = lists; }

void concourse_set_thread_name(const char *name) {
  // The name is cosmetic, so a failure is ignored.
  (void)pthread_setname_np(pthread_self(), name);
}

__attribute__((noinline)) uintptr_t concourse_caller_frame(void) {
  // The frame begins with the caller's frame pointer.
  return *(uintptr_t *)__builtin_frame_address(0);
}

uint32_t concourse_gettid(void) { return (uint32_t)syscall(SYS_gettid); }

uint32_t concourse_process;
static uint32_t loaded_in;
static atomic_bool forks_are_watched;
static struct {
  void (*_Atomic hook)(void *);
  void *context;
} fork_hooks[3];
static atomic_uint fork_hook_count;

void concourse_note_fork(void) {
  concourse_process = (uint32_t)getpid();
  concourse_forget_swift_thread();
  concourse_thread_local.id = 0;
  concourse_signal_note_fork();
  for (size_t i = 0; i < sizeof fork_hooks / sizeof fork_hooks[0]; i++) {
    void (*hook)(void *) = atomic_load(&fork_hooks[i].hook);
    if (hook) hook(fork_hooks[i].context);
  }
}

void concourse_at_fork(void (*hook)(void *), void *context) {
  unsigned place = atomic_fetch_add(&fork_hook_count, 1);
  if (place >= sizeof fork_hooks / sizeof fork_hooks[0]) abort();
  fork_hooks[place].context = context;
  atomic_store(&fork_hooks[place].hook, hook);
}

// If the C library refuses the handler for want of memory, a child has its parent's ids.
uint32_t concourse_learn_process(void) {
  loaded_in = concourse_process = (uint32_t)getpid();
  if (!atomic_exchange(&forks_are_watched, true))
    (void)pthread_atfork(concourse_prepare_swift_fork, NULL, concourse_note_fork);
  return concourse_process;
}

static void note_slack(void);

// Before this module's other constructors. The constructor of another library may have used the runtime already.
__attribute__((constructor(101))) static void note_load(void) {
  (void)concourse_process_id();
  concourse_note_swift_runtime();
  note_slack();
  concourse_inspection_record.thread_state =
      (char *)&concourse_thread_local - (char *)__builtin_thread_pointer();
}
bool concourse_is_forked(void) { return concourse_process_id() != loaded_in; }

static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static bool exit_key_made;

static void run_exit_hook(void *hook) {
  concourse_thread_local.exit_hook = CONCOURSE_EXIT_PAST;
  // A function pointer travels through the key's void pointer; POSIX guarantees the round trip.
  ((void (*)(void))hook)();
}

static void make_exit_key(void) { exit_key_made = pthread_key_create(&exit_key, run_exit_hook) == 0; }

void concourse_watch_exit(void (*hook)(void)) {
  pthread_once(&exit_key_once, make_exit_key);
  bool armed = exit_key_made && pthread_setspecific(exit_key, (void *)hook) == 0;
  concourse_thread_local.exit_hook = armed ? CONCOURSE_EXIT_WATCHED : CONCOURSE_EXIT_PAST;
}

int concourse_futex_wait(const uint32_t *word, uint32_t expected, int clock, uint64_t deadline) {
  struct timespec time = {.tv_sec = (time_t)(deadline / 1000000000), .tv_nsec = (long)(deadline % 1000000000)};
  int operation = FUTEX_WAIT_BITSET_PRIVATE | (clock == 2 ? FUTEX_CLOCK_REALTIME : 0);
  long result = syscall(SYS_futex, word, operation, expected, clock == 0 ? NULL : &time, NULL,
                        FUTEX_BITSET_MATCH_ANY);
  return result == 0 ? 0 : errno;
}

int concourse_futex_wake(const uint32_t *word, int count) {
  long woken = syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
  return woken < 0 ? 0 : (int)woken;
}

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

// The number of seccomp filters of the calling thread; 0 if the system does not tell (before Linux 5.9).
static long filter_count(void) {
  // The number comes behind the groups, of which there may be many.
  char text[16384];
  int file = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
  ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = 0;
  const char name[] = "\nSeccomp_filters:", *line = strstr(text, name);
  return line ? strtol(line + strlen(name), NULL, 10) : 0;
}

// Whether the process was loaded under the filter of a container. Those of Docker, Podman and Kubernetes refuse some
// calls, kill for none, and allow these.
static bool in_container;
static long container_filters;
__attribute__((constructor)) static void note_container(void) {
  if (!has_filter()) return;
  in_container = getenv("container") || getenv("KUBERNETES_SERVICE_HOST") || access("/.dockerenv", F_OK) == 0 ||
                 access("/run/.containerenv", F_OK) == 0;
  container_filters = filter_count();
}

bool concourse_may_set_priority(void) {
  return !has_filter() || (in_container && filter_count() == container_filters);
}

void concourse_yield(void) {
  if (in_container || !has_filter()) sched_yield();
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

bool concourse_is_lowered(int nice) { return !has_filter() && getpriority(PRIO_PROCESS, 0) > nice; }

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

static void adopt_slack_and_io(void);

void concourse_adopt_scheduling(void) {
  if (has_filter()) return;
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

bool concourse_may_take_nice(int nice) {
  if (has_filter()) return false;
  struct rlimit limit;
  if (getrlimit(RLIMIT_NICE, &limit) == 0 && 20 - nice <= (int)(limit.rlim_cur < 40 ? limit.rlim_cur : 40)) return true;
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{0}};
  return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1u << CAP_SYS_NICE));
}

int concourse_set_slice(uint64_t nanoseconds) {
  if (has_filter()) return EPERM;
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

// The timer slack and the I/O priority of the process's first thread. The slack of another thread is visible only with
// privilege, so it is noted.
static _Atomic long process_slack;
static void note_slack(void) {
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

// Descriptors 0 to 2 belong to the program. A program that was started without them, or that closed them, may later
// open its own files there.
int concourse_above_standard(int descriptor) {
  if (descriptor < 0 || descriptor > 2) return descriptor;
  int higher = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  int failure = errno;
  close(descriptor);
  errno = failure;
  return higher;
}

bool concourse_is_anonymous(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && (status.st_mode & S_IFMT) == 0;
}

int concourse_eventfd(void) { return concourse_above_standard(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

void concourse_eventfd_signal(int descriptor) {
  // Fails only when the counter is full; the descriptor is readable then.
  while (eventfd_write(descriptor, 1) != 0 && errno == EINTR) {
  }
}

void concourse_eventfd_clear(int descriptor) {
  eventfd_t count;
  // Fails with EAGAIN when the descriptor is not readable.
  while (eventfd_read(descriptor, &count) != 0 && errno == EINTR) {
  }
}

void concourse_eventfd_replace(int descriptor) {
  int fresh = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fresh < 0) return;
  (void)dup3(fresh, descriptor, O_CLOEXEC);
  close(fresh);
}

int concourse_epoll_create(void) {
  int descriptor = concourse_above_standard(epoll_create1(EPOLL_CLOEXEC));
  return descriptor >= 0 ? descriptor : -errno;
}

_Static_assert(CONCOURSE_READABLE == EPOLLIN && CONCOURSE_PRIORITY == EPOLLPRI && CONCOURSE_WRITABLE == EPOLLOUT &&
                   CONCOURSE_ERROR == EPOLLERR && CONCOURSE_HANG_UP == EPOLLHUP &&
                   (uint32_t)CONCOURSE_ONE_SHOT == (uint32_t)EPOLLONESHOT &&
                   (uint32_t)CONCOURSE_EDGE == (uint32_t)EPOLLET,
               "the header's constants are the kernel's");

int concourse_epoll_control(int epoll, int operation, int descriptor, uint32_t interest, uint64_t token) {
  struct epoll_event event = {.events = interest, .data.u64 = token};
  return epoll_ctl(epoll, operation, descriptor, &event) == 0 ? 0 : -errno;
}

int concourse_epoll_wait(int epoll, struct concourse_event *events, int capacity, int timeout) {
  struct epoll_event found[64];
  int count = epoll_wait(epoll, found, capacity < 64 ? capacity : 64, timeout);
  if (count < 0) return -errno;
  for (int i = 0; i < count; i++)
    events[i] = (struct concourse_event){.ready = found[i].events, .token = found[i].data.u64};
  return count;
}

int concourse_timerfd_create(bool wall) {
  int descriptor =
      concourse_above_standard(timerfd_create(wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  return descriptor >= 0 ? descriptor : -errno;
}

int concourse_timerfd_arm(int descriptor, bool wall, uint64_t nanoseconds) {
  struct itimerspec time = {
      .it_value = {.tv_sec = (time_t)(nanoseconds / 1000000000), .tv_nsec = (long)(nanoseconds % 1000000000)}};
  int flags = TFD_TIMER_ABSTIME | (wall ? TFD_TIMER_CANCEL_ON_SET : 0);
  return timerfd_settime(descriptor, flags, &time, NULL) == 0 ? 0 : errno;
}

long concourse_readable_bytes(int descriptor) {
  int count = 0;
  return ioctl(descriptor, FIONREAD, &count) == 0 ? count : -errno;
}

int concourse_poll_now(int descriptor, uint32_t interest) {
  struct pollfd question = {.fd = descriptor, .events = (short)interest};
  int count = poll(&question, 1, 0);
  return count < 0 ? -errno : question.revents;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONCOURSE_HAS_LEAK_CHECKER 1
#endif
#endif

#ifdef CONCOURSE_HAS_LEAK_CHECKER
void __lsan_register_root_region(const void *start, size_t size);
void __lsan_unregister_root_region(const void *start, size_t size);
#endif

void concourse_note_pointers(void *start, size_t size, bool holds) {
#ifdef CONCOURSE_HAS_LEAK_CHECKER
  if (holds) {
    __lsan_register_root_region(start, size);
  } else {
    __lsan_unregister_root_region(start, size);
  }
#else
  (void)start;
  (void)size;
  (void)holds;
#endif
}

#if __has_feature(thread_sanitizer)
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void concourse_race_check_off(void) { AnnotateIgnoreWritesBegin(__FILE__, __LINE__); }
void concourse_race_check_on(void) { AnnotateIgnoreWritesEnd(__FILE__, __LINE__); }
#else
void concourse_race_check_off(void) {}
void concourse_race_check_on(void) {}
#endif
