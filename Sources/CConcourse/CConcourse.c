#define _GNU_SOURCE
#include "futex_bits.h"
#include "include/CConcourse.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
bool concourse_thread_exists(uint32_t id) { return syscall(SYS_tgkill, getpid(), id, 0) == 0 || errno != ESRCH; }
uint32_t concourse_thread_count(void) {
  struct stat status;
  // The folder has a link from each thread's, its parent's and its own.
  return stat("/proc/self/task", &status) == 0 && status.st_nlink > 2 ? (uint32_t)status.st_nlink - 2 : 0;
}

uint32_t concourse_process;
static atomic_bool forks_are_watched;
static struct {
  void (*_Atomic hook)(void *);
  void *context;
} fork_hooks[3];
static atomic_uint fork_hook_count;

// In a child: the ids that its main thread had in the processes before. Of a longer line of forks, the last ones.
static uint32_t former_ids[8];
static uint32_t fork_count;
// The number of threads when the process last began to fork; 0 if it is unknown.
static atomic_uint threads_at_fork;
// In a child: whether one of the processes before may have had other threads when it forked.
static bool threads_were_left;

uint32_t concourse_forks(void) { return fork_count; }
bool concourse_left_threads(void) { return threads_were_left; }

bool concourse_is_former_id(uint32_t id) {
  for (size_t i = 0; i < sizeof former_ids / sizeof former_ids[0]; i++)
    if (former_ids[i] == id && id != 0) return true;
  return false;
}

void concourse_note_fork(void) {
  concourse_process = (uint32_t)getpid();
  concourse_forget_swift_thread();
  struct concourse_thread *thread = &concourse_thread_local;
  former_ids[fork_count++ % (sizeof former_ids / sizeof former_ids[0])] = thread->id;
  thread->id = 0;
  if (thread->worker || thread->delivering) thread->was_worker = 1;
  if (atomic_exchange(&threads_at_fork, 0) != 1) threads_were_left = true;
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

static void prepare_fork(void) {
  concourse_prepare_swift_fork();
  atomic_store(&threads_at_fork, concourse_thread_count());
}

// A child that is made without the C library does not know how many threads there were.
static void end_fork_in_parent(void) { atomic_store(&threads_at_fork, 0); }

// If the C library refuses the handler for want of memory, a child has its parent's ids.
uint32_t concourse_learn_process(void) {
  concourse_process = (uint32_t)getpid();
  if (!atomic_exchange(&forks_are_watched, true)) (void)pthread_atfork(prepare_fork, end_fork_in_parent, concourse_note_fork);
  return concourse_process;
}

// Weak: a static program has no loader, and its linker would warn.
extern __typeof(dlopen) dlopen __attribute__((weak));

static int find_own_name(struct dl_phdr_info *image, size_t size, void *name) {
  extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
  (void)size;
  if ((const char *)image->dlpi_phdr != (const char *)&__ehdr_start + __ehdr_start.e_phoff) return 0;
  *(const char **)name = image->dlpi_name;
  return 1;
}

// `dlclose` must not unmap the code that the pool's threads run, be it in a library of its own or in a plugin that has
// this one built in. Scripts/library links with -z nodelete, which a package cannot ask for.
static void keep_loaded(void) {
  // The program itself has no name.
  const char *name = "";
  dl_iterate_phdr(find_own_name, &name);
  if (*name && dlopen) (void)dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

// Before this module's other constructors. The constructor of another library may have used the runtime already.
__attribute__((constructor(101))) static void note_load(void) {
  (void)concourse_process_id();
  keep_loaded();
  concourse_note_swift_runtime();
  concourse_inspection_record.thread_state =
      (char *)&concourse_thread_local - (char *)__builtin_thread_pointer();
}
bool concourse_is_forked(void) { return fork_count != 0; }

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
                        CONCOURSE_FUTEX_BITS);
  return result == 0 ? 0 : errno;
}

int concourse_futex_wake(const uint32_t *word, int count) {
  long woken = syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
  return woken < 0 ? 0 : (int)woken;
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

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHECKS_RACES
#endif
#endif

#ifdef CHECKS_RACES
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void concourse_race_check_off(void) { AnnotateIgnoreWritesBegin(__FILE__, __LINE__); }
void concourse_race_check_on(void) { AnnotateIgnoreWritesEnd(__FILE__, __LINE__); }
#else
void concourse_race_check_off(void) {}
void concourse_race_check_on(void) {}
#endif
