// The token: which thread runs, and the decision who runs next.
//
// A thread that waits for the token sleeps on its gate, a futex, with all signals blocked: only the thread that runs takes
// signals. A thread that waits for an object is not runnable until another one wakes the object, or its deadline passes.
// Descriptors and children are looked at in each decision while threads wait for them. Pipes, eventfds, and sockets
// within the machine are ready at the latest when the call that makes them so returns, so this is deterministic.
//
// If no thread can go on, time jumps to the next deadline. If there is none either, the run is over.

#include "exploring.h"

#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct explored explored_threads[CONCOURSE_EXPLORING_THREADS];
struct explored *explored_live[CONCOURSE_EXPLORING_THREADS];
uint32_t explored_live_count, explored_thread_count;
__thread struct explored *explored_self;

/// How far time may jump, in all, while a thread could run. Else a program that waits for a second with a time limit of
/// ten would see the limit pass.
static const uint64_t most_early = 10000000;
static uint64_t early;
/// Jumps in a row after which none of the program has run. After MONITOR_JUMPS the engine's own deadlines (its monitor
/// looks each millisecond) are passed over for the next one of the program. After IDLE_JUMPS without such a deadline, or
/// TIMER_JUMPS with one, the run ends.
enum { MONITOR_JUMPS = 200, IDLE_JUMPS = 2000, TIMER_JUMPS = 200000 };
static uint32_t idle_jumps;
/// Points of one thread in a row after which it counts as polling.
enum { EXHAUSTION = 400 };
static uint32_t in_a_row;
/// Polls in a row while no other thread could go on.
static uint32_t lonely;
static uint64_t arrivals;
/// The kernel's id of the thread that has ended last; 0 once the kernel has forgotten it.
static uint32_t dying;
static bool is_finished;

// MARK: Sleeping and waking

// Not those of the C library, and none that the kernel raises for what the thread itself does.
const uint64_t explored_blockable = ~(1ull << 31 | 1ull << 32 | 1ull << (SIGSEGV - 1) | 1ull << (SIGILL - 1) |
                                    1ull << (SIGTRAP - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGBUS - 1) |
                                    1ull << (SIGABRT - 1) | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1));

// The next thread begins when the kernel has ended the last: the C library's end of a thread would run beside it.
static void await_death(void) {
  if (dying == 0) return;
  long process = SYSTEM1(SYS_getpid, 0);
  for (int i = 0; SYSTEM3(SYS_tgkill, process, dying, 0) == 0; i++) {
    // A first thread that has ended stays until the process ends.
    if (dying == (uint32_t)process && i > 20) break;
    if (i < 50) {
      sched_yield();
    } else {
      struct timespec moment = {.tv_nsec = 20000};
      SYSTEM3(SYS_nanosleep, &moment, NULL, 0);
    }
  }
  dying = 0;
}

void explore_sleep(struct explored *self) {
  explore_block_signals(self);
  uint64_t mask = self->mask;
  self->has_mask = false;
  // ORDERING: acquiring; pairs with the store in `give`: this thread sees what the others have done.
  while (__atomic_load_n(&self->gate, __ATOMIC_ACQUIRE) == 0)
    SYSTEM4(SYS_futex, &self->gate, FUTEX_WAIT_PRIVATE, 0, NULL);
  self->gate = 0;
  explored_file->running = self->number;
  await_death();
  // Handlers run here, as part of the schedule.
  bool was_inside = self->inside;
  uint16_t operation = self->operation;
  uintptr_t object = self->object;
  const void *place = self->place;
  self->inside = false;
  SYSTEM4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, MASK_SIZE);
  self->inside = was_inside;
  self->operation = operation;
  self->object = object;
  self->place = place;
}

static void give(struct explored *next) {
  // ORDERING: releasing; pairs with the load in `explore_sleep`.
  __atomic_store_n(&next->gate, 1, __ATOMIC_RELEASE);
  SYSTEM3(SYS_futex, &next->gate, FUTEX_WAKE_PRIVATE, 1);
}

_Noreturn static void rest(void) {
  uint64_t all = explored_blockable;
  SYSTEM4(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, MASK_SIZE);
  for (;;) SYSTEM3(SYS_pause, 0, 0, 0);
}

_Noreturn void explore_finish(uint32_t outcome, uint32_t culprit, uint64_t detail) {
  // ORDERING: relaxed; a thread that runs meanwhile rests at its next decision.
  __atomic_store_n(&is_finished, true, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < explored_thread_count; i++) explore_show(&explored_threads[i]);
  explored_file->thread_count = explored_thread_count;
  explored_file->culprit = culprit;
  explored_file->detail = detail;
  // ORDERING: releasing; the command that sees the outcome sees the rest.
  __atomic_store_n(&explored_file->outcome, outcome, __ATOMIC_RELEASE);
  SYSTEM3(SYS_futex, &explored_file->outcome, FUTEX_WAKE, INT32_MAX);
  if (explored_file->ends_process) SYSTEM1(SYS_exit_group, 1);
  rest();
}

// MARK: Who can go on

static void make_runnable(struct explored *thread) {
  thread->state = CONCOURSE_EXPLORING_RUNNABLE;
  thread->deadline = NEVER;
  thread->wakes = WAKES_NONE;
}

void explore_interrupt(struct explored *thread) {
  if (thread->state != CONCOURSE_EXPLORING_WAITING) return;
  make_runnable(thread);
  thread->interrupted = true;
}

int explore_wake(const void *object, int count) {
  int woken = 0;
  while (woken < count) {
    struct explored *longest = NULL;
    for (uint32_t i = 0; i < explored_live_count; i++) {
      struct explored *thread = explored_live[i];
      if (thread->state == CONCOURSE_EXPLORING_WAITING && thread->object == (uintptr_t)object &&
          thread->wakes == WAKES_NONE && (!longest || thread->arrival < longest->arrival))
        longest = thread;
    }
    if (!longest) break;
    make_runnable(longest);
    woken++;
  }
  return woken;
}

static bool is_programs(const struct explored *thread) { return !thread->is_engine || thread->depth > 0; }

static uint64_t first_timer(void) {
  uint64_t timer = explore_timer_deadline(), alarm = explore_alarm_deadline();
  return timer < alarm ? timer : alarm;
}

static uint64_t earliest_deadline(bool of_program) {
  uint64_t earliest = first_timer();
  for (uint32_t i = 0; i < explored_live_count; i++) {
    const struct explored *thread = explored_live[i];
    if (thread->state == CONCOURSE_EXPLORING_WAITING && thread->deadline < earliest && (!of_program || is_programs(thread)))
      earliest = thread->deadline;
  }
  return earliest;
}

/// When the first thread of the program goes on that does not poll, or a timer fires; 0 if one can go on now.
static uint64_t other_deadline(void) {
  uint64_t latest = first_timer();
  for (uint32_t i = 0; i < explored_live_count; i++) {
    const struct explored *thread = explored_live[i];
    if (!is_programs(thread) || explore_polls(thread)) continue;
    uint64_t next = thread->state == CONCOURSE_EXPLORING_RUNNABLE ? 0 : thread->deadline;
    if (next < latest) latest = next;
  }
  return latest;
}

/// Threads that poll may sleep for longer than they asked, but no other thread may: else a thread that waits with a time
/// limit would see it pass before what it waits for.
static uint64_t with_stride(uint64_t deadline) {
  uint64_t latest = other_deadline(), wanted = deadline + explore_stride();
  if (wanted > latest) wanted = latest;
  return wanted > deadline ? wanted : deadline;
}

static void expire(void) {
  uint64_t now = explore_now();
  explore_fire_timers();
  explore_fire_alarms();
  for (uint32_t i = 0; i < explored_live_count; i++) {
    struct explored *thread = explored_live[i];
    if (thread->state != CONCOURSE_EXPLORING_WAITING || thread->deadline > now) continue;
    make_runnable(thread);
    thread->timed_out = true;
  }
}

static bool wake_for_child(void) {
  bool found = false;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    struct explored *thread = explored_live[i];
    if (thread->state != CONCOURSE_EXPLORING_WAITING || !(thread->wakes & WAKES_CHILD)) continue;
    make_runnable(thread);
    found = true;
  }
  return found;
}

/// The thread that has waited longest for all others to be idle. The engine's monitor gets some looks before that, until
/// something is due for the program: it may find work behind a blocked worker.
static bool wake_for_idleness(void) {
  enum { LOOKS = 20, SOON = 5000000 };
  uint64_t look = earliest_deadline(false);
  if (idle_jumps < LOOKS && look < earliest_deadline(true) && look <= explore_now() + SOON) return false;
  struct explored *longest = NULL;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    struct explored *thread = explored_live[i];
    bool waits = thread->state == CONCOURSE_EXPLORING_WAITING && thread->wakes & WAKES_IDLE;
    if (waits && (!longest || thread->arrival < longest->arrival)) longest = thread;
  }
  if (longest) make_runnable(longest);
  return longest;
}

// While it is set, the thread that runs waits in real time.
bool explored_waits;

static bool await_children(void) {
  bool ended;
  for (int i = 0; i < 2500 && explore_has_children(&ended); i++) {
    explored_file->leaks |= CONCOURSE_EXPLORING_LEAK_CHILD_PROCESS;
    explore_await_rest();
    explore_has_children(&ended);
    bool child = ended && wake_for_child(), signal = ended && explore_deliver_signals();
    if (explore_poll(0) || child || signal) return true;
    if (ended) return false;
  }
  return false;
}

static bool await_outside(void) {
  // What the outside sends may be on its way.
  // ORDERING: relaxed, both; the watchdog looks again and again.
  __atomic_store_n(&explored_waits, true, __ATOMIC_RELAXED);
  bool found = explore_poll(200);
  __atomic_store_n(&explored_waits, false, __ATOMIC_RELAXED);
  return found || explore_deliver_signals();
}

/// Whether the outside could let a thread go on: a child, a connection, or a writer of standard input.
static bool waits_for_outside(void) {
  bool ended;
  if (explored_file->leaks & CONCOURSE_EXPLORING_LEAK_OUTSIDE_SOCKET || explore_has_children(&ended)) return true;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    const struct explored *thread = explored_live[i];
    if (!(thread->wakes & WAKES_DESCRIPTORS)) continue;
    for (uint32_t k = 0; k < thread->descriptor_count; k++) {
      int descriptor = thread->descriptors[k].fd, listens = 0;
      socklen_t size = sizeof listens;
      if (descriptor == STDIN_FILENO) return true;
      if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens) return true;
    }
  }
  return false;
}

// No thread can go on.
static void idle(void) {
  if (explore_deliver_signals()) return;
  // ORDERING: relaxed, all; the watchdog looks again and again.
  __atomic_store_n(&explored_waits, true, __ATOMIC_RELAXED);
  bool found = await_children();
  __atomic_store_n(&explored_waits, false, __ATOMIC_RELAXED);
  if (found || wake_for_idleness()) return;
  uint64_t deadline = earliest_deadline(false);
  // What comes from another machine comes in real time.
  if (explored_file->leaks & CONCOURSE_EXPLORING_LEAK_OUTSIDE_SOCKET && await_outside()) return;
  if (deadline != NEVER && !explored_file->real_time) {
    early = 0;
    idle_jumps++;
    if (idle_jumps > MONITOR_JUMPS) {
      uint64_t programs = earliest_deadline(true);
      if (programs != NEVER) deadline = programs;
      else if (idle_jumps > IDLE_JUMPS) explore_finish(CONCOURSE_EXPLORING_DEADLOCK, 0, 0);
      if (idle_jumps > TIMER_JUMPS) explore_finish(CONCOURSE_EXPLORING_HANG, 0, 0);
    }
  }
  if (deadline != NEVER) return explore_advance(with_stride(deadline));
  if (await_outside()) return;
  explore_finish(waits_for_outside() ? CONCOURSE_EXPLORING_WAITS_FOR_OUTSIDE : CONCOURSE_EXPLORING_DEADLOCK, 0, 0);
}

// MARK: Decisions

static uint32_t gather(uint16_t *candidates, const struct explored *excluded) {
  if (explored_signals_sent) explore_deliver_signals();
  expire();
  // Those of timers.
  if (explored_signals_sent) explore_deliver_signals();
  bool ended, waits = false;
  for (uint32_t i = 0; i < explored_live_count && !waits; i++)
    waits = explored_live[i]->state == CONCOURSE_EXPLORING_WAITING && explored_live[i]->wakes & WAKES_DESCRIPTORS;
  // What comes from a child is taken when no thread can go on.
  if (waits && !explore_has_children(&ended)) explore_poll(0);
  uint32_t count = 0;
  // Those that spin go on if no other can.
  for (int spinning = 0; spinning < 2 && count == 0; spinning++)
    for (uint32_t i = 0; i < explored_live_count; i++) {
      const struct explored *thread = explored_live[i];
      if (thread->state == CONCOURSE_EXPLORING_RUNNABLE && thread != excluded && (spinning || !explore_rests(thread)))
        candidates[count++] = thread->number;
    }
  return count;
}

static bool may_advance(void) {
  if (explored_file->real_time) return false;
  uint64_t deadline = earliest_deadline(false), now = explore_now();
  return deadline != NEVER && (deadline <= now || deadline - now <= most_early - early);
}

/// After a poll the next thread in turn, so that several that poll let all others run.
static uint16_t following(const struct explored *self, const uint16_t *candidates, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (candidates[i] > self->number) return candidates[i];
  return candidates[0];
}

/// Time passes for a thread that polls alone: 10 us, more the longer it does, until the next deadline.
static void pass_time(void) {
  enum { SHORTEST = 10000, ROUNDS = 16, DOUBLINGS = 7 };
  if (explored_file->real_time) return;
  uint64_t step = (uint64_t)SHORTEST << (lonely / ROUNDS < DOUBLINGS ? lonely / ROUNDS : DOUBLINGS);
  uint64_t deadline = earliest_deadline(false), then = explore_now() + step;
  lonely++;
  explore_advance(with_stride(deadline < then ? deadline : then));
}

/// Time passes for threads that spin if no other can go on.
static void pass_spin(struct explored *self) {
  explore_note_spin(self);
  if (!explore_only_spins()) return;
  uint64_t deadline = earliest_deadline(true);
  if (deadline == NEVER && explore_spins_for_ever() && !waits_for_outside())
    explore_finish(CONCOURSE_EXPLORING_HANG, self->number, 0);
  if (deadline == NEVER) deadline = earliest_deadline(false);
  if (deadline != NEVER && !explored_file->real_time) explore_advance(deadline);
}

/// Decides who runs on, and returns when that is the calling thread; at once if it has ended.
static void decide(struct explored *self, bool yields) {
  static uint16_t candidates[CONCOURSE_EXPLORING_THREADS + 1];
  struct concourse_exploring_header *file = explored_file;
  self->inside = true;
  int failure = errno;
  if (is_programs(self)) idle_jumps = 0;
  if (is_programs(self) && explore_note_polling(self, other_deadline) && !waits_for_outside())
    explore_finish(CONCOURSE_EXPLORING_HANG, 0, 0);
  if (self->operation == OP_SPIN && self->state == CONCOURSE_EXPLORING_RUNNABLE) pass_spin(self);
  for (;;) {
    // ORDERING: relaxed; the thread that sees it only rests.
    if (__atomic_load_n(&is_finished, __ATOMIC_RELAXED)) rest();
    self->points++;
    file->steps++;
    if (file->step_limit && file->steps > file->step_limit)
      explore_finish(CONCOURSE_EXPLORING_STEP_LIMIT, self->number, 0);
    bool exhausted = in_a_row > EXHAUSTION;
    bool leaves = self->state == CONCOURSE_EXPLORING_RUNNABLE && (yields || exhausted);
    // Several that only yield would keep time standing.
    if (yields && explore_is_polling()) pass_time();
    uint32_t count = gather(candidates, leaves ? self : NULL);
    while (count == 0) {
      if (leaves && self->state == CONCOURSE_EXPLORING_RUNNABLE) {
        if (yields && !explore_is_polling()) pass_time();
        candidates[count++] = self->number;
        break;
      }
      if (explored_live_count == 0) return;
      idle();
      count = gather(candidates, NULL);
    }
    bool can_go_on = self->state == CONCOURSE_EXPLORING_RUNNABLE && !leaves;
    uint16_t fallback = can_go_on ? self->number : leaves ? following(self, candidates, count) : candidates[0];
    uint32_t choices = count;
    if (may_advance()) candidates[choices++] = CONCOURSE_EXPLORING_TIME;
    uint16_t next = fallback;
    if (next != self->number || !yields) lonely = 0;
    if (choices > 1) {
      file->choices++;
      next = explore_choose(self, candidates, choices, fallback, exhausted);
    }
    explore_note(self, next, choices, next != fallback);
    if (next == CONCOURSE_EXPLORING_TIME) {
      uint64_t deadline = earliest_deadline(false), now = explore_now();
      if (deadline > now) early += deadline - now;
      explore_advance(deadline);
      continue;
    }
    in_a_row = next == self->number ? in_a_row + 1 : 0;
    if (next != self->number) {
      if (self->state == CONCOURSE_EXPLORING_ENDED) dying = self->id;
      // The other one may send a signal before this one sleeps.
      else explore_block_signals(self);
      give(&explored_threads[next]);
      if (self->state != CONCOURSE_EXPLORING_ENDED) explore_sleep(self);
    }
    break;
  }
  self->inside = false;
  if (self->has_mask) {
    // Handlers run here, outside of the library.
    self->has_mask = false;
    SYSTEM4(SYS_rt_sigprocmask, SIG_SETMASK, &self->mask, NULL, MASK_SIZE);
  }
  errno = failure;
}

static void arrive(struct explored *self, uint16_t operation, const void *object, const void *place) {
  self->operation = operation;
  self->object = (uintptr_t)object;
  self->place = place;
  if (operation != OP_SPIN) {
    self->spins = 0;
    if (is_programs(self)) explore_note_progress();
  }
  explore_arrives(self);
}

/// The engine and the runtimes change hands only where they wait: their own locks and wake-ups are parts of an operation
/// that is a point itself.
static bool is_part(uint16_t operation, const void *place) {
  return operation >= OP_CREATE && operation < OP_FIRST_FUNCTION && explore_is_quiet(((void *const *)place)[1]);
}

void explore_point(struct explored *self, uint16_t operation, const void *object, const void *place) {
  if (is_part(operation, place)) return;
  arrive(self, operation, object, place);
  decide(self, false);
}

void explore_yield(struct explored *self, uint16_t operation, const void *object, const void *place) {
  arrive(self, operation, object, place);
  decide(self, true);
}

static int wait_in(struct explored *self, uint16_t operation, const void *object, uint64_t deadline, const void *place) {
  self->operation = operation;
  self->object = (uintptr_t)object;
  self->place = place;
  self->deadline = deadline;
  self->arrival = ++arrivals;
  self->timed_out = self->interrupted = false;
  if (self->is_cancelled) return EINTR;
  self->state = CONCOURSE_EXPLORING_WAITING;
  decide(self, false);
  self->descriptors = NULL;
  return self->timed_out ? ETIMEDOUT : self->interrupted ? EINTR : 0;
}

int explore_wait(struct explored *self, uint16_t operation, const void *object, uint64_t deadline, const void *place) {
  self->wakes = WAKES_NONE;
  return wait_in(self, operation, object, deadline, place);
}

int explore_wait_descriptors(struct explored *self, uint16_t operation, const struct pollfd *descriptors, uint32_t count,
                             uint64_t deadline, const void *place) {
  self->wakes = WAKES_DESCRIPTORS;
  self->descriptors = descriptors;
  self->descriptor_count = count;
  return wait_in(self, operation, (void *)(uintptr_t)(count ? descriptors[0].fd : 0), deadline, place);
}

int explore_wait_outside(struct explored *self, uint16_t operation, uint8_t wakes, uint64_t signals, uint64_t deadline,
                         const void *place) {
  self->wakes = wakes;
  self->awaited = signals;
  return wait_in(self, operation, NULL, deadline, place);
}

EXPORTED int concourse_exploring_await_idleness(void) {
  struct explored *self = explore_current();
  if (!self) return 0;
  explore_wait_outside(self, OP_IDLE, WAKES_IDLE, 0, NEVER, HERE);
  return 1;
}

void explore_test_cancel(struct explored *self) {
  if (!self->is_cancelled) return;
  // A thread that may not be cancelled now notices the next cancellation only.
  self->is_cancelled = false;
  pthread_testcancel();
}

void explore_forget(const struct explored *thread) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < explored_live_count; i++)
    if (explored_live[i] != thread) explored_live[kept++] = explored_live[i];
  explored_live_count = kept;
}

void explore_end(struct explored *self) {
  arrive(self, OP_THREAD_ENDS, self, NULL);
  self->state = CONCOURSE_EXPLORING_ENDED;
  explore_forget(self);
  explore_wake(self, INT32_MAX);
  decide(self, false);
  // What remains of the thread passes through.
  explored_self = NULL;
}
