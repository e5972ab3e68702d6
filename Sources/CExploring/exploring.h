// What the files of the exploring library share. One thread runs at a time: it has the token. So none of the state here
// has a lock, and each thread reads what the one before it has written (the gate's futex orders them).

#ifndef EXPLORING_H
#define EXPLORING_H

#define _GNU_SOURCE
#include "include/concourse_exploring.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/// A function that takes the place of the C library's.
#define EXPORTED __attribute__((visibility("default")))
/// Declares `real_name`, a pointer to the C library's function, and `name` itself.
#define INTERPOSED(result, name, ...)                    \
  static result (*real_##name)(__VA_ARGS__);             \
  EXPORTED result name(__VA_ARGS__)
/// Finds the C library's function, whichever thread needs it first.
#define REAL(name) \
  (__builtin_expect(real_##name != NULL, 1) ? real_##name : (real_##name = (__typeof__(real_##name))explore_real(#name)))
void *explore_real(const char *name);

enum { NANOSECONDS = 1000000000 };
#define NEVER UINT64_MAX

/// What the thread that waits in a call can be woken by, besides `explore_wake` and its deadline.
enum wakes { WAKES_NONE = 0, WAKES_DESCRIPTORS = 1, WAKES_CHILD = 2, WAKES_SIGNALS = 4, WAKES_IDLE = 8, WAKES_LOCK = 16 };

struct explored {
  uint16_t number;
  uint16_t creator;
  uint32_t id;
  /// A futex: 1 when the thread has been given the token.
  uint32_t gate;
  /// CONCOURSE_EXPLORING_RUNNABLE and so on.
  uint8_t state;
  bool is_engine;
  /// Detached or joined: nothing refers to the thread once it has ended.
  bool is_detached;
  /// Inside the library: calls pass through.
  bool inside;
  bool timed_out, interrupted;
  /// The signal that has interrupted it has a handler after which calls go on (SA_RESTART).
  bool restarts;
  /// While it is in the library, all signals are blocked; `mask` is what the thread itself blocks.
  bool has_mask;
  /// `pthread_cancel` has been called for it, and it has not noticed yet.
  bool is_cancelled, refuses_cancelling;
  uint8_t wakes;
  /// Rounds of destructors of thread-specific data so far.
  uint8_t rounds;
  /// Items and operations of Dispatch that the thread is in.
  uint32_t depth;
  /// The operation that it waits in or is about to begin, and the object of it.
  uint16_t operation;
  uintptr_t object;
  uint64_t deadline;
  /// Orders the waiters of an object.
  uint64_t arrival;
  /// How often time had jumped when the wait began.
  uint64_t jumps;
  /// Of a futex: only a wake with one of these bits is for the thread.
  uint32_t bits;
  /// In `dispatchMain`, which never returns.
  bool serves_main;
  /// It polls descriptors to which the outside could connect.
  bool serves_outside;
  const struct pollfd *descriptors;
  uint32_t descriptor_count;
  /// The signals that the thread would take while it sleeps, and those that it waits for.
  uint64_t signals, awaited;
  uint64_t mask;
  /// What it blocks instead while it waits, as in `ppoll`; NULL if that is the same.
  const uint64_t *waiting_mask;
  /// The lock of a file that it waits for, and what came of it if another thread has tried for this one (files.c).
  const struct explored_attempt *attempt;
  long answer;
  bool is_answered;
  /// The barrier that it waits for; NULL once enough threads have come.
  const void *barrier;
  /// The lock of readers and writers that it wants to write under, and has had to wait for.
  const void *wanted_lock;
  uint32_t points;
  /// How often it has polled, and when: polling.c.
  uint32_t polls, poll_phase;
  /// How often in a row it has been found spinning, and up to which decision others go on instead: spinning.c.
  uint32_t spins;
  uint64_t rests_until;
  /// For PCT and POS.
  uint64_t priority;
  uintptr_t stack_end;
  const void *place;
  /// races.c: the queue on which the thread runs an item itself, or is about to, and whether alone.
  const void *run_on;
  bool runs_alone;
  pthread_t handle;
  void *(*entry)(void *);
  void *argument;
};

extern struct explored explored_threads[CONCOURSE_EXPLORING_THREADS];
/// Those that have not ended, in the order of their numbers.
extern struct explored *explored_live[CONCOURSE_EXPLORING_THREADS];
extern uint32_t explored_live_count, explored_thread_count;
extern __thread struct explored *explored_self __attribute__((tls_model("initial-exec")));
extern struct concourse_exploring_header *explored_file;

/// The calling thread, if the schedule controls it and it is not inside the library.
static inline struct explored *explore_current(void) {
  struct explored *self = explored_self;
  return self && !self->inside ? self : NULL;
}

/// The frame of an exported function, from which return addresses are found.
#define HERE __builtin_frame_address(0)

// token.c

/// Decides whether the calling thread runs on. `place`: its frame.
void explore_point(struct explored *self, uint16_t operation, const void *object, const void *place);
/// As `explore_point`, for a thread that polls: another one goes on if any can.
void explore_yield(struct explored *self, uint16_t operation, const void *object, const void *place);
/// Sleeps until `explore_wake` of the object, or until the deadline. Returns 0, ETIMEDOUT, or EINTR after a signal handler.
int explore_wait(struct explored *self, uint16_t operation, const void *object, uint64_t deadline, const void *place);
/// As `explore_wait`, for a wake with one of the bits.
int explore_wait_bits(struct explored *self, uint16_t operation, const void *object, uint32_t bits, uint64_t deadline,
                      const void *place);
/// As `explore_wait`, until a descriptor is ready.
int explore_wait_descriptors(struct explored *self, uint16_t operation, const struct pollfd *descriptors, uint32_t count,
                             uint64_t deadline, const void *place);
/// As `explore_wait`, until a child ends, or a signal of the set is pending.
int explore_wait_outside(struct explored *self, uint16_t operation, uint8_t wakes, uint64_t signals, uint64_t deadline,
                         const void *place);
/// Whether a call that can be restarted goes on after the wait in which it was interrupted.
static inline bool explore_goes_on(const struct explored *self) { return self->interrupted && self->restarts; }
/// As `explore_wait`, until a lock of a file can be had: `attempt` says which.
int explore_wait_file_lock(struct explored *self, const void *object, const void *place);
/// Whether a cancellation would end the wait that the thread is in, or is about to begin.
bool explore_ends_by_cancelling(const struct explored *thread);
/// Ends the calling thread if it has been cancelled. Called behind waits at which POSIX lets threads be cancelled.
void explore_test_cancel(struct explored *self);
/// The calling thread ends: gives the token away for good.
void explore_end(struct explored *self);
/// Sleeps until the thread has the token.
void explore_sleep(struct explored *self);
/// Ends the run; does not return.
_Noreturn void explore_finish(uint32_t outcome, uint32_t culprit, uint64_t detail);
/// The signals that threads without the token block.
extern const uint64_t explored_blockable;
/// Of the kernel's sets of signals.
enum { MASK_SIZE = 8 };

// runnable.c

/// A thread that waits can go on.
void explore_make_runnable(struct explored *thread);
/// The same, as after a signal.
void explore_interrupt(struct explored *thread);
/// The thread has got a signal: it goes on if it takes that, and so waits no longer.
void explore_interrupt_by(struct explored *thread, int signal);
/// Lets up to `count` threads that wait for the object go on, the longest waiting first. Returns how many.
int explore_wake(const void *object, int count);
/// As `explore_wake`, for threads that wait for one of the bits.
int explore_wake_bits(const void *object, int count, uint32_t bits);
/// Removes a thread from those that have not ended.
void explore_forget(const struct explored *thread);
/// Not one of the engine's that waits for work.
bool explore_is_programs(const struct explored *thread);
/// The next time at which a thread goes on, or a timer fires. `of_program`: not counting threads of the engine.
uint64_t explore_earliest_deadline(bool of_program);
/// When the first thread of the program goes on that does not poll, or a timer fires; 0 if one can go on now.
uint64_t explore_other_deadline(void);
/// When a thread may go on that polls until the deadline.
uint64_t explore_with_stride(uint64_t deadline);
/// Those that can go on now, but not `excluded`; returns how many.
uint32_t explore_gather(uint16_t *candidates, const struct explored *excluded);
/// Whether time may jump to the next deadline though a thread can go on; and that jump.
bool explore_may_advance(void);
void explore_advance_early(void);
/// No thread can go on: waits for what comes from outside, advances time, or ends the run.
void explore_idle(void);
/// A thread of the program has run.
void explore_end_idleness(void);
/// How often time has jumped because no thread could go on.
extern uint64_t explored_jumps;
/// While it is set, the thread that runs waits in real time, or has given the token to one that has not run yet.
extern bool explored_waits;

// stuck.c

/// A thread that can never go on, whatever others do, since it waits for itself by way of the owners of locks and the ends
/// of threads; NULL if there is none.
const struct explored *explore_find_cycle(void);
/// Whether a thread of the program has waited for another one during so many jumps of time that none will let it go on.
bool explore_is_left_behind(void);

// outside.c

/// What could let a thread go on that is not in the process. OUTSIDE_CLIENT: only one that connects to a socket of the
/// process, or sends to it. OUTSIDE_OTHERS: a child, a connection to another machine, or a writer of standard input.
enum outside { OUTSIDE_NOTHING, OUTSIDE_CLIENT, OUTSIDE_OTHERS };
enum outside explore_outside(void);
/// Whether a client could make one of the descriptors ready.
bool explore_can_serve(const struct pollfd *descriptors, uint32_t count);
/// Ends the run with the outcome. If only a client could let it go on, and the first run has not ended either, it is a server
/// that waits.
_Noreturn void explore_finish_waiting(uint32_t outcome);

// locks.c and threads.c, for c11.c and alarms.c: what the functions of POSIX do. `place`: the frame of the call.

/// A thread ends, perhaps with robust mutexes, which others may take then.
void explore_let_try_robust_locks(void);
int explore_lock(struct explored *self, pthread_mutex_t *mutex, uint64_t deadline, const void *place);
int explore_try_lock(struct explored *self, pthread_mutex_t *mutex, const void *place);
int explore_unlock(struct explored *self, pthread_mutex_t *mutex, const void *place);
int explore_await(struct explored *self, pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline,
                  const void *place);
int explore_signal(struct explored *self, pthread_cond_t *condition, bool all, const void *place);
int explore_once(struct explored *self, pthread_once_t *once, void (*body)(void), const void *place);
int explore_create(struct explored *self, pthread_t *handle, const pthread_attr_t *attributes, void *(*entry)(void *),
                   void *argument, bool is_engine, const void *place);
int explore_join(struct explored *self, pthread_t handle, void **result, const void *place);

// signals.c

/// Signals may be pending that a sleeping thread has to take.
extern bool explored_signals_sent;
/// Lets the threads go on that take the signals which are pending; false if there are none.
bool explore_deliver_signals(void);
/// As `sigaction`, for a handler of this library: past the thread sanitizer, which calls handlers later.
int explore_set_action(int signal, const struct sigaction *action, struct sigaction *former);
/// Whether the process ignores the signal, so that it must not be sent.
bool explore_discards(int signal);
/// Whether the thread, which waits, would take the signal: by a handler, or because it waits for it.
bool explore_takes(const struct explored *thread, int signal);
/// Whether the signal has a handler after which calls go on.
bool explore_restarts_after(int signal);
/// Blocks signals of the calling thread until its decision has been made.
void explore_block_signals(struct explored *self);
/// The set of signals as the kernel stores it. It replaces the thread's mask during a wait. Returns `kept`, or NULL.
const uint64_t *explore_mask(const sigset_t *set, uint64_t *kept);
/// Takes the signals that are pending and that the mask admits, which end the wait; false if there are none.
bool explore_take_admitted(const uint64_t *mask);

// alarms.c

/// The earliest time of a timer that sends a signal or calls a function.
uint64_t explore_alarm_deadline(void);
void explore_fire_alarms(void);

// strategy.c

void explore_seed(uint64_t seed);
uint64_t explore_random(void);
/// Random numbers for the program, from a sequence of their own.
void explore_fill_random(void *into, size_t size);
void explore_prepare_strategy(void);
/// Until it is called, all decisions are the default.
void explore_let_switch(void);
/// Chooses among `count` candidates, whose numbers ascend; CONCOURSE_EXPLORING_TIME may be the last. `fallback` is the
/// default. `exhausted`: the thread has had many points in a row.
uint16_t explore_choose(struct explored *self, uint16_t *candidates, uint32_t count, uint16_t fallback, bool exhausted);
void explore_arrives(struct explored *thread);

// polling.c

/// Counts a decision of a thread of the program. Returns true if the program has only polled, for so long that it hangs.
/// `other_deadline`: says when a thread goes on that does not poll.
bool explore_note_polling(struct explored *self, uint64_t (*other_deadline)(void));
/// Another number whenever the program has done something else than to poll.
uint32_t explore_polling_phase(void);
/// Whether the program has only polled for a while.
bool explore_is_polling(void);
/// Whether the thread is one of those that do.
bool explore_polls(const struct explored *thread);
/// By how much a thread that polls may sleep for longer than it asked.
uint64_t explore_stride(void);

// hold.c

/// Items are no longer held, and those that are will not run.
void explore_drop_items(void);

// trace.c

bool explore_open_file(void);
/// Takes the file, if it is of this version.
bool explore_use_file(struct concourse_exploring_header *header);
/// Forgets what was counted and recorded so far.
void explore_count_anew(void);
void explore_note(struct explored *self, uint16_t next, uint32_t choices, bool switched);
void explore_show(struct explored *thread);
uint16_t explore_frames(const struct explored *self, const void *place, uint64_t *frames);

// time.c

/// Nanoseconds of virtual time since the program began.
uint64_t explore_now(void);
void explore_begin_time(void);
/// The deadline for a time of a clock.
uint64_t explore_deadline(clockid_t clock, const struct timespec *time, bool is_absolute);
/// As the kernel and the C library look at time limits: whether the nanoseconds are less than a second.
static inline bool explore_is_time(const struct timespec *time) {
  return !time || (time->tv_nsec >= 0 && time->tv_nsec < NANOSECONDS);
}
/// As `explore_is_time`, for calls that refuse negative seconds: those of the kernel. For locks and semaphores of the C
/// library such a moment has passed.
static inline bool explore_is_duration(const struct timespec *time) {
  return explore_is_time(time) && (!time || time->tv_sec >= 0);
}
/// As `nanosleep`.
int explore_nanosleep(struct explored *self, const struct timespec *time, struct timespec *rest, const void *place);
/// Advances to a time; with real time, sleeps until then or until a descriptor is ready.
void explore_advance(uint64_t time);
/// The earliest time of a timer descriptor.
uint64_t explore_timer_deadline(void);
/// Makes the timer descriptors readable whose time has come.
void explore_fire_timers(void);

// descriptors.c

/// Lets those go on whose descriptors are ready; false if there are none.
bool explore_poll(int milliseconds);

/// The parameters of an interposed function, or the arguments of its call.
#define LIST(...) __VA_ARGS__

// files.c

/// Tries the lock that the thread waits for, and takes it for it; false while another one has it.
bool explore_take_file_lock(struct explored *thread);
/// Whether it is another process that has that lock.
bool explore_others_have_file_lock(const struct explored *thread);
/// Whether it is a lock of a part of a file.
bool explore_is_of_part(const struct explored_attempt *attempt);
/// A lock of a file may have been given up.
void explore_let_try_file_locks(void);

/// streams.c: the program's standard input waits in the schedule.
void explore_take_input(void);

// children.c

/// The first part of a file; empty if it cannot be read. Returns its length.
size_t explore_read_file(const char *path, char *text, size_t size);
/// Whether there are children; `ended`: one of them can be waited for.
bool explore_has_children(bool *ended);
/// Waits until the children have ended or sleep.
void explore_await_rest(void);
/// The same, if there are children.
void explore_settle(void);

// spinning.c

/// For the watchdog: the processor time without a point after which it asks a thread where it is.
uint64_t explore_spin_patience(void);
/// Makes the thread yield if it spins.
void explore_ask(const struct explored *thread);
/// The kernel's bit of the signal that has asked a thread; 0 before. The program does not use that signal.
extern uint64_t explored_asked;
void explore_note_spin(struct explored *self);
/// A thread of the program has come to another point.
void explore_note_progress(void);
/// Whether all threads that can go on only spin, and whether they have done so for long.
bool explore_only_spins(void);
bool explore_spins_for_ever(void);
/// Whether none of them counts meanwhile, and so perhaps computes.
bool explore_spins_certainly(void);
static inline bool explore_rests(const struct explored *thread) {
  return thread->spins > 0 && explored_file->steps < thread->rests_until;
}

/// counting.c: whether the thread spins and counts, as this look and those before it say. `context`: of the signal.
bool explore_counts(const struct explored *self, const void *context);

// exchanges.c

/// Makes points of the instructions by which Swift's `Mutex` is taken and released.
void explore_find_exchanges(void);

// races.c

/// The program has been built with the thread sanitizer.
extern bool explored_races;
void explore_prepare_races(void);
/// report.c: the sanitizer's report will end the run. Returns false if it cannot be taken.
bool explore_prepare_report(void);
/// An item begins or ends, on the calling thread.
void explore_order_item_begin(void);
void explore_order_item_end(void);
/// An operation of Dispatch begins or ends. `object`, `argument`: its first two arguments.
void explore_order_before(struct explored *self, uint16_t operation, const void *object, const void *argument,
                          const void *place);
void explore_order_after(struct explored *self, uint16_t operation, const void *object, const void *argument);
/// The thread may have got the queue on which it runs an item itself.
void explore_order_run(const struct explored *self);
/// A continuation is about to be resumed; an asynchronous function has returned to the program.
void explore_order_resumption(void);
void explore_order_return(void);
/// A wait for a condition has taken its mutex, or is about to release it.
void explore_order_mutex(void *mutex, bool is_taken);
/// A lock has been taken, or is about to be released, by code that the sanitizer does not see.
void explore_order_lock(const void *lock);
void explore_order_unlock(const void *lock);

// machine.c

/// Whether the machine looks as it does in a run.
extern bool explored_is_fixed;
/// Whether the descriptor is one of /dev/urandom, also if it has come from another one.
bool explore_is_random(int descriptor);

// token.c, for watchdog.c and threads.c

void explore_start(void);
extern bool explored_is_on;
void explore_watch(void);
bool explore_is_own_code(const void *address);
/// In a child that was forked: it runs as it likes.
void explore_leave_child(void);
/// Whether the address is in the program itself, not in a library.
bool explore_is_program(const void *address);
/// The program's variables, or the first part of them.
const void *explore_program_data(size_t *size);
bool explore_is_quiet(const void *address);
struct explored *explore_new_thread(struct explored *creator);

// MARK: System calls, past the definitions here

static inline long explore_system(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#endif
}
#define SYSTEM1(n, a) explore_system(n, (long)(a), 0, 0, 0, 0, 0)
#define SYSTEM3(n, a, b, c) explore_system(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYSTEM4(n, a, b, c, d) explore_system(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/// Converts the result of a system call as the C library does.
static inline long explore_result(long result) {
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}

/// The function that takes the place of `swift_task_switch`, which it calls.
void *explore_hops(void *task_switch);

// The numbers in concourse_exploring_operations.h, by name.
enum {
  OP_THREAD_BEGINS = 1, OP_THREAD_ENDS, OP_ITEM_BEGINS, OP_ITEM_ENDS, OP_TIME, OP_HANDLER,
  OP_CREATE = 16, OP_JOIN, OP_LOCK, OP_TRYLOCK, OP_UNLOCK, OP_COND_WAIT, OP_COND_SIGNAL, OP_COND_BROADCAST, OP_READ_LOCK,
  OP_WRITE_LOCK, OP_RW_UNLOCK, OP_ONCE, OP_SPIN_LOCK, OP_SPIN_UNLOCK, OP_BARRIER, OP_SEM_WAIT, OP_SEM_POST, OP_FUTEX_WAIT,
  OP_FUTEX_WAKE, OP_FUTEX_LOCK, OP_FUTEX_UNLOCK, OP_YIELD, OP_SLEEP, OP_POLL, OP_EPOLL, OP_READ, OP_WRITE, OP_ACCEPT,
  OP_CONNECT, OP_WAITPID, OP_CLOSE, OP_CLOCK, OP_KILL, OP_SIGWAIT, OP_EXIT, OP_IDLE, OP_TIMER, OP_EXCHANGE, OP_SPIN,
  OP_FILE_LOCK,
  /// The operations from here on are functions with an entry of their own (entries.S).
  OP_FIRST_FUNCTION = 256,
  /// And those from here on are functions of Swift Concurrency.
  OP_FIRST_RUNTIME = 512,
  OP_ASYNC = 261, OP_ASYNC_AND_WAIT, OP_ASYNC_AND_WAIT_F, OP_ASYNC_ENFORCE_F, OP_ASYNC_F, OP_BARRIER_ASYNC,
  OP_BARRIER_ASYNC_AND_WAIT, OP_BARRIER_ASYNC_AND_WAIT_F, OP_BARRIER_ASYNC_F, OP_BARRIER_SYNC, OP_BARRIER_SYNC_F,
  OP_APPLY = 259, OP_APPLY_F, OP_BLOCK_NOTIFY = 273, OP_BLOCK_WAIT = 276, OP_GROUP_ASYNC, OP_GROUP_ASYNC_F, OP_GROUP_ENTER, OP_GROUP_LEAVE, OP_GROUP_NOTIFY,
  OP_GROUP_NOTIFY_F, OP_GROUP_WAIT, OP_SEMAPHORE_SIGNAL = 297, OP_SEMAPHORE_WAIT, OP_SOURCE_CANCEL_AND_WAIT = 301,
  OP_IO_BARRIER = 284, OP_IO_BARRIER_F, OP_IO_READ = 287, OP_IO_READ_F, OP_IO_WRITE, OP_IO_WRITE_F,
  OP_DISPATCH_ONCE = 292, OP_DISPATCH_ONCE_F, OP_SOURCE_HANDLER = 304, OP_SOURCE_HANDLER_F, OP_SYNC = 309, OP_SYNC_F,
  OP_MAIN = 291, OP_CONTINUATION_RESUME = 519, OP_CONTINUATION_THROWING, OP_CONTINUATION_ERROR,
  OP_TASK_SWITCH = 513, OP_TASK_CANCEL, OP_TASK_IS_CANCELLED = 515, OP_TASK_ADD_HANDLER = 532, OP_TASK_REMOVE_HANDLER = 533,
};

#endif
