// What Swift cannot say: initial-exec thread-local storage, a trap, a spin hint, and the few system
// calls and constants that the Glibc module does not carry. No logic lives here.

#ifndef CCONCOURSE_H
#define CCONCOURSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "concourse_ring.h"

#include "linux_sources.h"

/// Everything the engine keeps per thread. Only the thread itself touches it.
struct concourse_thread {
  /// The innermost running item's `Frame`, or NULL outside items.
  void *_Nullable frame;
  /// The queue of `frame`, for when the stack that it lies on is gone; stale while `frame` is NULL.
  void *_Nullable queue;
  /// This thread's `WorkerRecord` when it is a pool worker, else NULL.
  void *_Nullable worker;
  /// Free `WorkNode`s cached by this thread, linked through their first word.
  void *_Nullable free_nodes;
  /// How many nodes hang on `free_nodes`.
  uint32_t free_count;
  /// How many make the thread give some back: 0 until its exit is watched, and again past its exit hook.
  uint32_t free_limit;
  /// Kernel thread id; 0 until first asked for, and again in a forked child.
  uint32_t id;
  /// Objects whose release waits for an outer release to unwind (see Submit/DeferredRelease.swift).
  void *_Nullable deferred_releases;
  /// How many parallel loops this thread is taking part in, one inside the other.
  uint32_t loop_depth;
  /// How many bodies of "once" this thread is running, one inside the other.
  uint32_t once_depth;
  /// By how much the nice value of a lowered worker lies above the process's; 0 on other threads.
  int32_t nice;
  /// How far the thread-exit hook is: `CONCOURSE_EXIT_…`.
  uint8_t exit_hook;
  /// 1 when the thread has woken another since it last waited (see Park/Spin.swift).
  uint8_t has_woken;
  /// 1 while the thread drains `deferred_releases`.
  uint8_t releasing;
};

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

/// Ends the process at once with SIGILL, in every build mode.
static inline __attribute__((noreturn, always_inline)) void concourse_trap(void) { __builtin_trap(); }

/// The processor's spin-wait hint.
static inline __attribute__((always_inline)) void concourse_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ __volatile__("yield");
#endif
}

/// The runtime's table of root queues, set once before the first queue exists.
extern void *_Nullable concourse_root_table __attribute__((visibility("hidden")));
static inline __attribute__((always_inline)) void *_Nullable concourse_roots(void) {
  return concourse_root_table;
}
void concourse_set_roots(void *_Nonnull table);

uint32_t concourse_gettid(void);

/// Whether the process was forked, without `exec`, from the one that loaded this code.
bool concourse_is_forked(void);

/// Between these calls the thread sanitizer, where there is one, overlooks what this thread does to memory:
/// for changes whose order follows from reference counts, which it does not see.
void concourse_race_check_off(void);
void concourse_race_check_on(void);

/// Names the calling thread; at most 15 bytes are kept.
void concourse_set_thread_name(const char *_Nonnull name);

/// Arms `hook` to run when the calling thread exits, and notes in `exit_hook` whether the system lets it.
void concourse_watch_exit(void (*_Nonnull hook)(void));

/// Waits while `*word == expected`. `clock`: 0 no deadline, 1 CLOCK_MONOTONIC, 2 CLOCK_REALTIME, the
/// deadline being absolute, in nanoseconds. Returns 0 or the errno.
int concourse_futex_wait(const uint32_t *_Nonnull word, uint32_t expected, int clock, uint64_t deadline);
/// Wakes up to `count` waiters; returns how many.
int concourse_futex_wake(const uint32_t *_Nonnull word, int count);

/// Gives the calling thread a nice value. Returns 0 or the errno.
int concourse_set_nice(int nice);
/// The nice value of the process's first thread.
int concourse_process_nice(void);
/// Whether the calling thread has the right to any nice value from this one up. False beside a seccomp filter.
bool concourse_may_take_nice(int nice);
/// Asks for a time slice of the calling thread's own, under the ordinary policies. Returns 0 or the errno; kernels
/// before 6.12 change nothing. Refused beside a seccomp filter.
int concourse_set_slice(uint64_t nanoseconds);

/// Processors in the calling thread's affinity mask; at least 1.
int concourse_affinity_count(void);

/// Starts a detached thread with all signals blocked but the synchronous faults, SIGPIPE, SIGPROF and
/// SIGSYS. Returns 0 or the errno.
int concourse_spawn(void *_Nullable (*_Nonnull entry)(void *_Nullable), void *_Nullable argument);

/// Runs `child` in the child after every fork. Returns 0 or the errno.
int concourse_at_fork_child(void (*_Nonnull child)(void));

/// The state letter of a thread of this process ('R', 'S', 'D', …), or 0 when it cannot be read.
char concourse_thread_state(uint32_t tid);

/// Tells the leak checker, in a build that has one, to look for pointers in memory from the system
/// (`holds`), or no more. Nothing in other builds.
void concourse_note_pointers(void *_Nonnull start, size_t size, bool holds);

/// The descriptor itself, or a duplicate that is none of 0 to 2: those belong to the program. Keeps errno.
int concourse_above_standard(int descriptor);

/// A non-blocking, close-on-exec eventfd; -1 when the system refuses.
int concourse_eventfd(void);
/// Makes an eventfd readable.
void concourse_eventfd_signal(int descriptor);
/// Makes an eventfd unreadable.
void concourse_eventfd_clear(int descriptor);

/// One event as epoll tells it.
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
/// Adds (1), removes (2) or modifies (3) what is watched. Returns 0 or -errno.
int concourse_epoll_control(int epoll, int operation, int descriptor, uint32_t interest, uint64_t token);
/// Waits up to `timeout` milliseconds, without end if negative. Returns how many events were stored, or -errno.
int concourse_epoll_wait(int epoll, struct concourse_event *_Nonnull events, int capacity, int timeout);

/// A non-blocking timerfd: on CLOCK_REALTIME if `wall`, else on CLOCK_MONOTONIC. -errno if refused.
int concourse_timerfd_create(bool wall);
/// Arms a timerfd for an absolute time; 0 disarms it. A wall timer also fires when the clock is set.
int concourse_timerfd_arm(int descriptor, bool wall, uint64_t nanoseconds);

/// Counts deliveries of a signal from now on, by a handler that then calls the one that was installed
/// before it. Returns 0 or -errno.
int concourse_signal_count(int signal);
/// Deliveries since the last call.
uint64_t concourse_signal_take(int signal);
/// The eventfd to make readable with each delivery; set before the first signal is counted.
void concourse_signal_report_to(int descriptor);
/// Lets the calling thread take the signals in `mask`, whose lowest bit is signal 1.
void concourse_signal_unblock(uint64_t mask);
/// Lets threads of ours take a signal that the program sends to them: those made from now on, and the others when
/// they call `concourse_signal_adopt`. EINVAL for what is no signal, or cannot be caught; else 0.
int concourse_signal_allow(int signal);
/// Takes the allowed signals out of a set of signals to block (a sigset_t).
void concourse_signal_exempt(void *_Nonnull blocked);
void concourse_signal_adopt(void);
/// One more than the highest signal number.
int concourse_signal_limit(void);

/// Bytes that wait to be read (FIONREAD), or -errno.
long concourse_readable_bytes(int descriptor);
/// What poll(2) says at once of the events asked for; -errno if it fails.
int concourse_poll_now(int descriptor, uint32_t interest);

#endif
