// What Swift cannot express: initial-exec thread-local storage, a trap, a spin hint, a signal handler, and system calls
// and constants that the Glibc module lacks.

#ifndef CCONCOURSE_H
#define CCONCOURSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "concourse_hooks.h"
#include "concourse_recording.h"

#include "concourse_ring.h"
#include "concourse_thread.h"

#include "linux_sources.h"

enum {
  CONCOURSE_EXIT_UNWATCHED = 0,
  CONCOURSE_EXIT_WATCHED = 1,
  /// The hook has run, or the system refused it.
  CONCOURSE_EXIT_PAST = 2,
};

extern __thread struct concourse_thread concourse_thread_local
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline __attribute__((always_inline)) struct concourse_thread *_Nonnull
concourse_thread_current(void) {
  return &concourse_thread_local;
}

/// Terminates the process with SIGILL (on arm64 with SIGTRAP), in every build mode.
static inline __attribute__((noreturn, always_inline)) void concourse_trap(void) { __builtin_trap(); }

/// The processor's spin-wait hint.
static inline __attribute__((always_inline)) void concourse_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // About as long as the pause of x86-64, for which the numbers of rounds are chosen. `yield` takes one cycle on
  // processors without hyperthreads.
  __asm__ __volatile__("isb");
#endif
}

/// The runtime's table of root queues, set once before the first queue exists.
extern void *_Nullable concourse_root_table __attribute__((visibility("hidden")));
static inline __attribute__((always_inline)) void *_Nullable concourse_roots(void) {
  return concourse_root_table;
}
void concourse_set_roots(void *_Nonnull table);

/// The shard of each processor, at most 64; none with one shard. Called before the first queue exists. `in_turn`: the shards
/// are pretended, and each thread has one by its number.
void concourse_set_shards(const uint8_t *_Nonnull shards, uint32_t processors, bool in_turn);
/// Where in the table of roots the threads of a shard submit; at any time.
void concourse_set_shard_roots(uint32_t shard, uint32_t roots);
extern const uint8_t *_Nullable concourse_shards __attribute__((visibility("hidden")));
void concourse_find_shard(void);
/// Gives the calling thread the shard of the processor that it runs on, unless it is a worker.
static inline __attribute__((always_inline)) void concourse_adopt_shard(void) {
  // ORDERING: acquiring; pairs with the store in `concourse_set_shards`.
  if (__builtin_expect(__atomic_load_n(&concourse_shards, __ATOMIC_ACQUIRE) != NULL, 0)) concourse_find_shard();
}

/// The lists of blocked threads, for tools that look at the process; NULL until a thread has been blocked for long. The
/// layout is in Queue/Watch/BlockedThreads.swift.
void concourse_set_blocked_threads(void *_Nonnull lists);

enum {
  /// Incremented when `concourse report` can no longer read what an older library has in memory.
  CONCOURSE_INSPECTION_LAYOUT = 1,
  CONCOURSE_INSPECTION_TYPES = 40,
};
/// Where `concourse report` finds the engine in the memory of a process or in its core dump. A note of the library or
/// program leads to it (inspection.c). Nothing in the process reads it.
struct concourse_inspection {
  uint32_t layout;
  uint32_t size;
  /// From a thread's thread pointer to its `concourse_thread`.
  int64_t thread_state;
  /// The `concourse_root_table`, which has those of one shard after the other; NULL until the runtime has been made.
  const void *_Nullable roots;
  /// Variables of the pool: the active workers allowed in all bands of a kind, the threads allowed, and those that exist.
  const void *_Nullable width, *_Nullable cap, *_Nullable threads;
  /// Metadata of Swift types, in any order: their descriptors have the names.
  const void *_Nullable types[CONCOURSE_INSPECTION_TYPES];
  /// The shards of the pool, 1 to 64. Older libraries have one, and no such field.
  uint64_t shards;
};
extern struct concourse_inspection concourse_inspection_record __attribute__((visibility("hidden")));
static inline struct concourse_inspection *_Nonnull concourse_inspection_get(void) {
  return &concourse_inspection_record;
}

uint32_t concourse_gettid(void);
/// Whether the process has a thread of this id.
bool concourse_thread_exists(uint32_t id);
/// The number of threads of the process; 0 if the system does not say.
uint32_t concourse_thread_count(void);

/// The frame pointer of the calling function.
uintptr_t concourse_caller_frame(void);

/// The process id, which is also the main thread's id; a fork changes it. 0 until first needed.
extern uint32_t concourse_process __attribute__((visibility("hidden")));
uint32_t concourse_learn_process(void);
static inline uint32_t concourse_process_id(void) {
  uint32_t known = concourse_process;
  return known != 0 ? known : concourse_learn_process();
}

/// Whether this process is a fork, without `exec`, of the process that loaded this code.
bool concourse_is_forked(void);
/// The number of forks that have led to this process since this code was loaded.
uint32_t concourse_forks(void);
/// Whether a fork that has led to this process may have left other threads in the parent.
bool concourse_left_threads(void);
/// Whether the thread that forked, which is the main thread of a child, had this id in a process that it descends from.
bool concourse_is_former_id(uint32_t id);

/// What the child does after a fork: it forgets the ids and descriptors of its parent, and runs the hooks. The C library
/// calls it in each child that `fork` makes.
void concourse_note_fork(void);
/// Runs `hook` in each child from now on. For at most three callers.
void concourse_at_fork(void (*_Nonnull hook)(void *_Nullable context), void *_Nullable context);

/// Looks for the libraries of Swift's runtime among those that are loaded.
void concourse_note_swift_runtime(void);
/// Before a fork, on the thread that forks.
void concourse_prepare_swift_fork(void);
/// For a forked child: Swift's runtime reads the thread's id again when it next needs it.
void concourse_forget_swift_thread(void);

/// Between these calls the thread sanitizer ignores this thread's memory accesses. For changes that reference counts
/// order, which the sanitizer does not see.
void concourse_race_check_off(void);
void concourse_race_check_on(void);

/// Names the calling thread, truncated to 15 bytes.
void concourse_set_thread_name(const char *_Nonnull name);

/// Arms `hook` to run when the calling thread exits. Stores the outcome in `exit_hook`.
void concourse_watch_exit(void (*_Nonnull hook)(void));

/// Waits while `*word == expected`. `clock`: 0 for no deadline, 1 for CLOCK_MONOTONIC, 2 for CLOCK_REALTIME. `deadline`
/// is absolute, in nanoseconds. Returns 0 or the errno.
int concourse_futex_wait(const uint32_t *_Nonnull word, uint32_t expected, int clock, uint64_t deadline);
/// Wakes up to `count` waiters; returns how many.
int concourse_futex_wake(const uint32_t *_Nonnull word, int count);

/// Whether no seccomp filter may kill the process for setting priorities: there is none, or only that of a container.
bool concourse_may_set_priority(void);
/// Sets the calling thread's nice value. Returns 0 or the errno: EPERM under a seccomp filter that may kill.
int concourse_set_nice(int nice);
/// Whether the calling thread's nice value is above this one. False under a seccomp filter that may kill.
bool concourse_is_lowered(int nice);
/// Gives the calling thread the scheduling policy of the process's first thread, unless that is a real-time one, its
/// timer slack and its I/O priority, and lets it use that thread's processors, too, if the system allows it. Does nothing
/// under a seccomp filter that may kill.
void concourse_adopt_scheduling(void);
/// The nice value of the process's first thread; 0 under a seccomp filter that may kill.
int concourse_process_nice(void);
/// Whether the calling thread may take this nice value and every higher one. False under a seccomp filter that may kill.
bool concourse_may_take_nice(int nice);
/// Sets the calling thread's time slice; the scheduling policy stays. Returns 0 or the errno: EPERM under a seccomp
/// filter that may kill. Kernels before 6.12 ignore it.
int concourse_set_slice(uint64_t nanoseconds);

/// Lets another thread have this processor, unless a seccomp filter may kill the process for it. Returns whether it did.
bool concourse_yield(void);

/// Notes the calling thread as a worker, after it has got its signal mask. Processes that it starts get the signal mask,
/// the nice value and the slice of the process (children.c).
void concourse_begin_worker(void);
/// Note what the calling thread has been given.
void concourse_note_given_nice(int nice);
void concourse_note_given_slice(uint64_t nanoseconds);
void concourse_note_unblocked(uint64_t mask);

/// Processors that the calling thread or the process's first thread may use; at least 1.
int concourse_affinity_count(void);

/// Their numbers in ascending order, `most` at most. Returns how many there are, 0 if the system does not say.
int concourse_allowed_processors(int *_Nonnull numbers, int most);

/// Starts a detached thread. Returns 0 or the errno. The thread blocks all signals except those of
/// `concourse_signal_allow`, SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGSEGV, SIGABRT, SIGPIPE, SIGPROF and SIGSYS.
int concourse_spawn(void *_Nullable (*_Nonnull entry)(void *_Nullable), void *_Nullable argument);

/// Whether the process has an io_uring that is not ours, as of the last second. The kernel cancels the requests of a thread
/// that ends.
bool concourse_has_foreign_ring(void);

/// The state letter of a thread of this process ('R', 'S', 'D', …), or 0 when it cannot be read.
char concourse_thread_state(uint32_t tid);
/// The processor's time that a thread of this process has used, in nanoseconds; 0 if unknown, and under a seccomp filter.
uint64_t concourse_processor_time(uint32_t tid);

// MARK: Threads that sleep (sleeping.c)

/// A thread's system call, its arguments, and the stack pointer.
struct concourse_sleep {
  int64_t call;
  uint64_t arguments[6];
  uint64_t stack;
};

enum concourse_wait {
  /// The call, or a condition, a semaphore or the end of a thread.
  CONCOURSE_WAIT_CALL,
  /// A lock, which another thread holds.
  CONCOURSE_WAIT_LOCK,
  /// One of the engine's waits. A worker in a wait for clients has told the pool that it sleeps.
  CONCOURSE_WAIT_ENGINE,
  /// A lock whose holder cannot be told.
  CONCOURSE_WAIT_UNKNOWN
};

/// Copies memory of this process. Returns false if it is not there.
bool concourse_read_memory(uint64_t address, void *_Nonnull into, size_t size);

/// How often a thread of this process has slept and has lost its processor. Returns false if unknown.
bool concourse_read_switches(uint32_t tid, uint64_t counts[_Nonnull 2]);

/// Returns false if the thread is in no system call, or if unknown.
bool concourse_read_sleep(uint32_t tid, struct concourse_sleep *_Nonnull sleep);

/// What a sleep is for. `holder`: the thread that holds the lock.
enum concourse_wait concourse_wait_of(const struct concourse_sleep *_Nonnull sleep, uint32_t *_Nonnull holder);

/// A name to print, or NULL.
const char *_Nullable concourse_name_of_call(int64_t call);

/// An address in this module's code.
uint64_t concourse_code_address(void);

/// Finds Swift's runtime. Returns false if the process has none of its own library, and under a seccomp filter that may
/// kill.
bool concourse_find_tasks(void);

/// The number of the task that a thread runs, by the address of its `concourse_thread`; 0 if it runs none.
uint64_t concourse_task_of_thread(uint64_t state, char name[_Nonnull 64]);

/// Registers (`holds`) or unregisters memory that the leak checker must scan for pointers. No effect in builds without
/// the checker.
void concourse_note_pointers(void *_Nonnull start, size_t size, bool holds);

/// The descriptor itself, or a duplicate above 2: the program owns 0 to 2. Preserves errno.
int concourse_above_standard(int descriptor);

/// A non-blocking, close-on-exec eventfd, or -1.
int concourse_eventfd(void);
/// Makes an eventfd readable.
void concourse_eventfd_signal(int descriptor);
/// Makes an eventfd unreadable.
void concourse_eventfd_clear(int descriptor);
/// Puts an eventfd of its own in the place of one that a forked child shares with its parent, under the same number.
void concourse_eventfd_replace(int descriptor);
/// False for a file, pipe or socket: one that the program opened under the number of a descriptor of ours that it closed.
bool concourse_is_anonymous(int descriptor);

/// One event as epoll reports it.
struct concourse_event {
  uint32_t ready;
  uint64_t token;
};
enum {
  CONCOURSE_READABLE = 0x001,
  CONCOURSE_PRIORITY = 0x002,
  CONCOURSE_WRITABLE = 0x004,
  CONCOURSE_ERROR = 0x008,
  CONCOURSE_HANG_UP = 0x010,
  CONCOURSE_ONE_SHOT = 1u << 30,
  CONCOURSE_EDGE = 1u << 31,
};
/// A close-on-exec epoll descriptor, or -errno.
int concourse_epoll_create(void);
/// Adds (1), removes (2) or modifies (3) a watched descriptor. Returns 0 or -errno.
int concourse_epoll_control(int epoll, int operation, int descriptor, uint32_t interest, uint64_t token);
/// Waits up to `timeout` milliseconds; a negative timeout never expires. Returns the number of events stored, or
/// -errno.
int concourse_epoll_wait(int epoll, struct concourse_event *_Nonnull events, int capacity, int timeout);

/// A non-blocking timerfd on CLOCK_REALTIME if `wall`, else on CLOCK_MONOTONIC; or -errno.
int concourse_timerfd_create(bool wall);
/// Arms a timerfd for an absolute time; 0 disarms it. A wall timer also fires when the clock is set. Returns 0 or the
/// errno.
int concourse_timerfd_arm(int descriptor, bool wall, uint64_t nanoseconds);

/// Installs a handler that counts deliveries of a signal and then calls the previous handler. Returns 0 or -errno.
int concourse_signal_count(int signal);
/// Deliveries since the last call.
uint64_t concourse_signal_take(int signal);
/// Sets the eventfd that each delivery makes readable. Call it before the first signal is counted.
void concourse_signal_report_to(int descriptor);
/// In a forked child: the eventfd is the parent's.
void concourse_signal_note_fork(void);
/// Unblocks the signals in `mask` on the calling thread. The lowest bit is signal 1.
void concourse_signal_unblock(uint64_t mask);
/// Lets the runtime's threads receive a signal that the program sends to them. New threads allow it from the start, the
/// others from their next `concourse_signal_adopt`. Returns 0, or EINVAL for a number that is not a signal or cannot be
/// caught.
int concourse_signal_allow(int signal);
/// Removes the allowed signals from a set of signals to block (a sigset_t).
void concourse_signal_exempt(void *_Nonnull blocked);
/// Unblocks the allowed signals on the calling thread.
void concourse_signal_adopt(void);
/// One more than the highest signal number.
int concourse_signal_limit(void);

/// Number of bytes ready to read (FIONREAD), or -errno. Not for regular files, which may hold more than an int counts.
long concourse_readable_bytes(int descriptor);
/// Whether the next byte of a socket is an urgent one (SIOCATMARK). FIONREAD counts only the bytes before it.
bool concourse_is_at_mark(int socket);
/// Whether two descriptors refer to one open file description; false if the kernel does not say.
bool concourse_is_same_file(int descriptor, int other);
/// Whether a descriptor's file is in memory: one of memfd_create, or on a tmpfs.
bool concourse_has_seals(int descriptor);
/// Whether the kernel makes a file's bytes when it is read: in /proc, or in sysfs and the tree of control groups.
enum concourse_generated {
  CONCOURSE_GENERATED_NOT,
  CONCOURSE_GENERATED_IN_PROC,
  CONCOURSE_GENERATED_ELSEWHERE,
};
enum concourse_generated concourse_generated(int descriptor);
/// The result of a poll(2) for the given events with timeout 0, or -errno.
int concourse_poll_now(int descriptor, uint32_t interest);

#endif
