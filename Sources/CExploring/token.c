// The token: which thread runs, and the decision who runs next.
//
// A thread that waits for the token sleeps on its gate, a futex, with all signals blocked: only the thread that runs takes
// signals. Which threads could have it is said by runnable.c.

#include "exploring.h"

#include <linux/futex.h>
#include <sched.h>
#include <string.h>

struct explored explored_threads[CONCOURSE_EXPLORING_THREADS];
struct explored *explored_live[CONCOURSE_EXPLORING_THREADS];
uint32_t explored_live_count, explored_thread_count;
__thread struct explored *explored_self;

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

// Handlers run here, outside of the library, as part of the schedule. They may come to points and wait.
static void take_signals(struct explored *self) {
  const struct explored kept = *self;
  self->inside = self->has_mask = false;
  self->waiting_mask = NULL;
  // A wait that something else has ended leaves pending what only its mask would have admitted.
  if (kept.waiting_mask && kept.interrupted) SYSTEM4(SYS_rt_sigprocmask, SIG_SETMASK, kept.waiting_mask, NULL, MASK_SIZE);
  SYSTEM4(SYS_rt_sigprocmask, SIG_SETMASK, &kept.mask, NULL, MASK_SIZE);
  self->inside = kept.inside;
  self->timed_out = kept.timed_out;
  self->interrupted = kept.interrupted;
  self->restarts = kept.restarts;
  self->operation = kept.operation;
  self->object = kept.object;
  self->place = kept.place;
}

void explore_sleep(struct explored *self) {
  explore_block_signals(self);
  // ORDERING: acquiring; pairs with the store in `give`: this thread sees what the others have done.
  while (__atomic_load_n(&self->gate, __ATOMIC_ACQUIRE) == 0)
    SYSTEM4(SYS_futex, &self->gate, FUTEX_WAIT_PRIVATE, 0, NULL);
  self->gate = 0;
  explored_file->running = self->number;
  await_death();
  // Behind that wait: the ending thread may get a processor seconds later, too.
  // ORDERING: relaxed; the watchdog looks again and again.
  __atomic_store_n(&explored_waits, false, __ATOMIC_RELAXED);
  take_signals(self);
}

static void give(struct explored *next) {
  // On a busy machine, the other thread may get a processor seconds later.
  // ORDERING: relaxed; the watchdog looks again and again.
  __atomic_store_n(&explored_waits, true, __ATOMIC_RELAXED);
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
  // What others did meanwhile does not matter.
  bool is_deadlock = (outcome == CONCOURSE_EXPLORING_HANG || outcome == CONCOURSE_EXPLORING_STEP_LIMIT) && explore_find_cycle();
  if (is_deadlock) outcome = CONCOURSE_EXPLORING_DEADLOCK;
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

// MARK: Decisions

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
  uint64_t deadline = explore_earliest_deadline(false), then = explore_now() + step;
  lonely++;
  explore_advance(explore_with_stride(deadline < then ? deadline : then));
}

/// Time passes for threads that spin if no other can go on.
static void pass_spin(struct explored *self) {
  explore_note_spin(self);
  if (!explore_only_spins()) return;
  uint64_t deadline = explore_earliest_deadline(true);
  if (deadline == NEVER && explore_spins_for_ever() && explore_outside() == OUTSIDE_NOTHING)
    explore_finish(explore_spins_certainly() ? CONCOURSE_EXPLORING_HANG : CONCOURSE_EXPLORING_SPINNING, self->number, 0);
  if (deadline == NEVER) deadline = explore_earliest_deadline(false);
  if (deadline != NEVER && !explored_file->real_time) explore_advance(deadline);
}

/// Decides who runs on, and returns when that is the calling thread; at once if it has ended.
static void decide(struct explored *self, bool yields) {
  static uint16_t candidates[CONCOURSE_EXPLORING_THREADS + 1];
  struct concourse_exploring_header *file = explored_file;
  self->inside = true;
  int failure = errno;
  if (explore_is_programs(self)) explore_end_idleness();
  if (explore_is_programs(self) && explore_note_polling(self, explore_other_deadline) && explore_outside() != OUTSIDE_OTHERS)
    explore_finish_waiting(CONCOURSE_EXPLORING_HANG);
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
    uint32_t count = explore_gather(candidates, leaves ? self : NULL);
    while (count == 0) {
      if (leaves && self->state == CONCOURSE_EXPLORING_RUNNABLE) {
        if (yields && !explore_is_polling()) pass_time();
        candidates[count++] = self->number;
        break;
      }
      if (explored_live_count == 0) return;
      explore_idle();
      count = explore_gather(candidates, NULL);
    }
    bool can_go_on = self->state == CONCOURSE_EXPLORING_RUNNABLE && !leaves;
    uint16_t fallback = can_go_on ? self->number : leaves ? following(self, candidates, count) : candidates[0];
    uint32_t choices = count;
    if (explore_may_advance()) candidates[choices++] = CONCOURSE_EXPLORING_TIME;
    uint16_t next = fallback;
    if (next != self->number || !yields) lonely = 0;
    if (choices > 1) {
      file->choices++;
      next = explore_choose(self, candidates, choices, fallback, exhausted);
    }
    explore_note(self, next, choices, next != fallback);
    if (next == CONCOURSE_EXPLORING_TIME) {
      explore_advance_early();
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
  // Others may have given it the queue.
  if (self->run_on) explore_order_run(self);
  if (self->has_mask) take_signals(self);
  errno = failure;
}

static void arrive(struct explored *self, uint16_t operation, const void *object, const void *place) {
  self->operation = operation;
  self->object = (uintptr_t)object;
  self->place = place;
  if (operation != OP_SPIN) {
    self->spins = 0;
    if (explore_is_programs(self)) explore_note_progress();
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
  self->jumps = explored_jumps;
  self->timed_out = self->interrupted = self->restarts = false;
  if (self->is_cancelled && explore_ends_by_cancelling(self)) {
    self->waiting_mask = NULL;
    self->interrupted = true;
    return EINTR;
  }
  // From here on `signals` says which would end the wait.
  if (self->waiting_mask || self->wakes & (WAKES_SIGNALS | WAKES_CHILD)) explore_block_signals(self);
  self->state = CONCOURSE_EXPLORING_WAITING;
  decide(self, false);
  self->descriptors = NULL;
  return self->timed_out ? ETIMEDOUT : self->interrupted ? EINTR : 0;
}

int explore_wait(struct explored *self, uint16_t operation, const void *object, uint64_t deadline, const void *place) {
  return explore_wait_bits(self, operation, object, UINT32_MAX, deadline, place);
}

int explore_wait_bits(struct explored *self, uint16_t operation, const void *object, uint32_t bits, uint64_t deadline,
                      const void *place) {
  self->wakes = WAKES_NONE;
  self->bits = bits;
  return wait_in(self, operation, object, deadline, place);
}

int explore_wait_descriptors(struct explored *self, uint16_t operation, const struct pollfd *descriptors, uint32_t count,
                             uint64_t deadline, const void *place) {
  self->wakes = WAKES_DESCRIPTORS;
  self->descriptors = descriptors;
  self->descriptor_count = count;
  int result = wait_in(self, operation, (void *)(uintptr_t)(count ? descriptors[0].fd : 0), deadline, place);
  self->serves_outside = result == ETIMEDOUT && explore_is_polling() && explore_can_serve(descriptors, count);
  return result;
}

int explore_wait_outside(struct explored *self, uint16_t operation, uint8_t wakes, uint64_t signals, uint64_t deadline,
                         const void *place) {
  self->wakes = wakes;
  self->awaited = signals;
  return wait_in(self, operation, NULL, deadline, place);
}

int explore_wait_file_lock(struct explored *self, const void *object, const void *place) {
  self->wakes = WAKES_LOCK;
  self->bits = UINT32_MAX;
  return wait_in(self, OP_FILE_LOCK, object, NEVER, place);
}

EXPORTED int concourse_exploring_await_idleness(void) {
  struct explored *self = explore_current();
  if (!self) return 0;
  explore_wait_outside(self, OP_IDLE, WAKES_IDLE, 0, NEVER, HERE);
  return 1;
}

// The cancellation points of POSIX. Waits for locks and barriers are not among them.
bool explore_ends_by_cancelling(const struct explored *thread) {
  if (thread->refuses_cancelling) return false;
  switch (thread->operation) {
    case OP_JOIN: case OP_COND_WAIT: case OP_SEM_WAIT: case OP_SLEEP: case OP_POLL: case OP_EPOLL: case OP_READ:
    case OP_WRITE: case OP_ACCEPT: case OP_WAITPID: case OP_SIGWAIT: return true;
    // `fcntl` and `lockf`, but not `flock`.
    case OP_FILE_LOCK: return thread->attempt && explore_is_of_part(thread->attempt);
    default: return false;
  }
}

void explore_test_cancel(struct explored *self) {
  if (!self->is_cancelled || self->refuses_cancelling) return;
  self->is_cancelled = false;
  pthread_testcancel();
}

void explore_end(struct explored *self) {
  arrive(self, OP_THREAD_ENDS, self, NULL);
  self->state = CONCOURSE_EXPLORING_ENDED;
  explore_forget(self);
  explore_wake(self, INT32_MAX);
  explore_let_try_robust_locks();
  decide(self, false);
  // What remains of the thread passes through.
  explored_self = NULL;
}
