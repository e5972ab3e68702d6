// Processes that a worker starts get what the process has, not what the engine has given to its worker: the signal mask
// with which the process began, the nice value of its first thread, and the kernel's time slice. What an item has changed
// on its thread, or asks for in the attributes of posix_spawn, stays.
//
// `fork` calls a fork handler, which sets all three in the child. posix_spawn calls none, so the library defines
// posix_spawn and posix_spawnp, which give the mask to the C library's own function as an attribute, and raise the worker
// for the time of the call. Foundation's Process calls them. The timer slack and the I/O priority are inherited right:
// each thread of the engine takes those of the first thread when it starts.
//
// The child still inherits
// - the nice value of utility and background, if the process may not raise threads: the kernel refuses it;
// - all three from vfork and clone, which call no handler, from system and popen, which reach posix_spawn inside the C
//   library, and in programs that load the library by dlopen, after the C library;
// - the mask, if the caller blocks all signals around fork, and in the child restores the mask that it had.
//
// Rejected: workers that leave signals open, also only while system or popen runs. Handlers would interrupt items (S146).
// Rejected: a thread of normal priority that starts the processes. They would lose what the item has set on its thread
// (affinity, capabilities, seccomp filters, namespaces), and PR_SET_PDEATHSIG would mean the wrong thread.

#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

// What the engine has given to this thread.
static __thread struct {
  bool is_worker;
  uint64_t mask;
  // 0 while the thread has the kernel's own slice.
  uint64_t slice;
  bool has_nice;
  int nice;
} given __attribute__((tls_model("initial-exec")));

// The mask with which the process, or at least this library, began. The present one of the first thread may be one of a
// moment: pthread_create and others block all signals meanwhile.
static uint64_t process_mask;

static uint64_t own_mask(void) {
  sigset_t set;
  uint64_t mask = 0;
  pthread_sigmask(SIG_BLOCK, NULL, &set);
  for (int signal = 1; signal <= 64 && signal < NSIG; signal++)
    if (sigismember(&set, signal) == 1) mask |= (uint64_t)1 << (signal - 1);
  return mask;
}

static void set_of(uint64_t mask, sigset_t *set) {
  sigemptyset(set);
  for (int signal = 1; signal <= 64 && signal < NSIG; signal++)
    if (mask >> (signal - 1) & 1) sigaddset(set, signal);
}

__attribute__((constructor)) static void note_mask(void) { process_mask = own_mask(); }

void concourse_note_given_nice(int nice) {
  given.has_nice = true;
  given.nice = nice;
}

void concourse_note_given_slice(uint64_t nanoseconds) { given.slice = nanoseconds; }

void concourse_note_unblocked(uint64_t mask) { given.mask &= ~mask; }

// What a child that this thread is about to start shall get.
struct child {
  bool has_mask, has_nice, has_slice;
  uint64_t mask;
  int nice;
};
static __thread struct child next_child __attribute__((tls_model("initial-exec")));

static struct child prepare_child(void) {
  int before = errno;
  struct child child = {.has_slice = given.slice != 0};
  child.has_mask = own_mask() == given.mask;
  if (child.has_mask) child.mask = process_mask;
  if (given.has_nice && concourse_may_set_priority()) {
    child.nice = concourse_process_nice();
    child.has_nice = child.nice != given.nice && getpriority(PRIO_PROCESS, 0) == given.nice;
  }
  errno = before;
  return child;
}

// A lowered thread without privilege cannot raise itself: the child then keeps the nice value.
static void take_back(const struct child *child) {
  int before = errno;
  if (child->has_nice) (void)setpriority(PRIO_PROCESS, 0, child->nice);
  if (child->has_slice) (void)concourse_set_slice(0);
  errno = before;
}

// MARK: fork

static void before_fork(void) {
  next_child = given.is_worker ? prepare_child() : (struct child){.has_mask = false};
}

static void in_child(void) {
  take_back(&next_child);
  if (next_child.has_mask) {
    sigset_t set;
    set_of(next_child.mask, &set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
  }
  // The child has no worker.
  given.is_worker = false;
}

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
// Refused only for want of memory; the child then keeps what the worker has.
static void watch_forks(void) { (void)pthread_atfork(before_fork, NULL, in_child); }

void concourse_begin_worker(void) {
  pthread_once(&fork_once, watch_forks);
  given.mask = own_mask();
  given.is_worker = true;
}

// MARK: posix_spawn

#ifdef __GLIBC__

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const[], char *const[]);

// The C library's own, behind these in the order in which symbols are searched.
static spawn_function *_Atomic next_spawn;
static spawn_function *_Atomic next_spawnp;

// In a static executable no symbol comes after these. Its C library has this function, because of the reference to
// `system`.
extern int __spawni(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                    char *const[], char *const[], int) __attribute__((weak));
__attribute__((used)) static int (*const spawns_inside)(const char *) = system;

static int call_next(bool searches, pid_t *id, const char *file, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
  spawn_function *_Atomic *slot = searches ? &next_spawnp : &next_spawn;
  // ORDERING: relaxed, both; every thread finds the same function.
  spawn_function *next = atomic_load_explicit(slot, memory_order_relaxed);
  if (next == NULL) {
    next = (spawn_function *)dlsym(RTLD_NEXT, searches ? "posix_spawnp" : "posix_spawn");
    atomic_store_explicit(slot, next, memory_order_relaxed);
  }
  if (next) return next(id, file, actions, attributes, arguments, environment);
  return __spawni ? __spawni(id, file, actions, attributes, arguments, environment, searches) : ENOSYS;
}

static int spawn(bool searches, pid_t *id, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
  if (!given.is_worker) return call_next(searches, id, file, actions, attributes, arguments, environment);
  struct child child = prepare_child();
  posix_spawnattr_t with_mask;
  short flags = 0;
  if (attributes) {
    // glibc's attributes have no pointers.
    with_mask = *attributes;
    posix_spawnattr_getflags(attributes, &flags);
  } else {
    posix_spawnattr_init(&with_mask);
  }
  if (child.has_mask && !(flags & POSIX_SPAWN_SETSIGMASK)) {
    sigset_t set;
    set_of(child.mask, &set);
    posix_spawnattr_setsigmask(&with_mask, &set);
    posix_spawnattr_setflags(&with_mask, flags | POSIX_SPAWN_SETSIGMASK);
    attributes = &with_mask;
  }
  uint64_t slice = given.slice;
  take_back(&child);
  int failure = call_next(searches, id, file, actions, attributes, arguments, environment);
  int after = errno;
  if (child.has_nice) (void)concourse_set_nice(given.nice);
  if (child.has_slice) (void)concourse_set_slice(slice);
  errno = after;
  return failure;
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int posix_spawn(pid_t *id, const char *file, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
  return spawn(false, id, file, actions, attributes, arguments, environment);
}

EXPORTED int posix_spawnp(pid_t *id, const char *file, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
  return spawn(true, id, file, actions, attributes, arguments, environment);
}

#endif
