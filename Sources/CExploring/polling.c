// Threads that poll: they look, sleep or yield, and look again. While the program does nothing else, no strategy may keep
// the thread away that they wait for, and time passes faster and faster up to the next deadline of another thread. If
// they poll for an hour of virtual time, and no other thread waits for a time, none can make progress any more: the
// program hangs. While a task sleeps the engine waits for a time, so there only the number of polls says so.

#include "exploring.h"

enum {
  /// Decisions in which the program has only polled, after which the schedule is fair.
  PATIENCE = 2000,
  /// After so many yields time passes faster, and each time so many more, twice as fast.
  LEISURE = 50000,
  DOUBLING = 2500,
  DOUBLINGS = 22,
  /// A hang has so many yields, or so many fewer sleeps: programs yield so many times to let time pass, but do not sleep so
  /// often. So many decisions are one also if there is a deadline.
  POLLS = 200000,
  SLEEP = 20,
  RESUMPTION = 4,
  DECISIONS = 300000,
  /// Polls after which a thread's own deadline counts as that of a poll.
  HABIT = 16,
};
static const uint64_t shortest = 1000000, hour = 3600ull * NANOSECONDS;

/// Since the program last did something else: decisions, polls, and the time then.
static uint64_t decisions, polls, begin, last_item;
static bool has_items;
/// Jobs that the runtime has enqueued meanwhile, and that have not begun.
static uint64_t enqueued;
/// Counts the changes between polling and the rest.
static uint32_t phase;

/// Whether a task has slept before the job that begins now.
static bool is_late(void) {
  uint64_t before = last_item;
  last_item = explore_now();
  return last_item - before > shortest / 10;
}

/// YIELDS: a thread; RESUMES: a task.
enum kind { SLEEPS, YIELDS, RESUMES, LOOKS, PROCEEDS };

static enum kind kind(const struct explored *self) {
  bool waits = self->state == CONCOURSE_EXPLORING_WAITING && self->deadline != NEVER;
  switch (self->operation) {
    case OP_YIELD: case OP_CLOCK: return YIELDS;
    case OP_SLEEP: case OP_POLL: case OP_EPOLL: case OP_COND_WAIT: return waits ? SLEEPS : YIELDS;
    case OP_JOIN: case OP_LOCK: case OP_TRYLOCK: case OP_UNLOCK: case OP_READ_LOCK: case OP_WRITE_LOCK: case OP_RW_UNLOCK:
    case OP_SPIN_LOCK: case OP_SPIN_UNLOCK: case OP_SEM_WAIT: case OP_FUTEX_WAIT: case OP_FUTEX_WAKE: case OP_FUTEX_LOCK:
    case OP_FUTEX_UNLOCK: case OP_EXCHANGE: case OP_SPIN: case OP_FILE_LOCK:
    case OP_IDLE: return LOOKS;
    // The jobs of a task that polls. It sleeps in the runtime, which uses timers and continuations for that. Items that were
    // there before are work.
    case OP_ITEM_BEGINS:
      if (enqueued == 0) return PROCEEDS;
      enqueued--;
      has_items = true;
      return is_late() ? SLEEPS : RESUMES;
    case OP_ITEM_ENDS: case OP_TASK_SWITCH: case OP_TASK_IS_CANCELLED: case OP_TASK_ADD_HANDLER:
    case OP_TASK_REMOVE_HANDLER: return LOOKS;
    default:
      if (self->operation < OP_FIRST_FUNCTION || !self->place || !explore_is_quiet(((void *const *)self->place)[1]))
        return PROCEEDS;
      if (self->operation < OP_FIRST_RUNTIME) enqueued++;
      return LOOKS;
  }
}

bool explore_note_polling(struct explored *self, uint64_t (*other_deadline)(void)) {
  if (explored_file->real_time) return false;
  enum kind what = kind(self);
  if (what == PROCEEDS) {
    decisions = polls = enqueued = 0;
    has_items = false;
    phase++;
    return false;
  }
  if (what != LOOKS) {
    if (self->poll_phase != phase) self->polls = 0;
    self->poll_phase = phase;
    self->polls++;
    polls += what == SLEEPS ? SLEEP : what == RESUMES ? RESUMPTION : 1;
  }
  if (decisions++ == 0) begin = explore_now();
  if (polls < POLLS) return false;
  // A program that serves timers for ever, in its usual order, is none that hangs.
  if (has_items) return explored_file->made_count > 0;
  return decisions >= DECISIONS || (explore_now() - begin >= hour && other_deadline() == NEVER);
}

uint32_t explore_polling_phase(void) { return phase; }

bool explore_is_polling(void) { return decisions > PATIENCE; }

bool explore_polls(const struct explored *thread) { return thread->poll_phase == phase && thread->polls > HABIT; }

uint64_t explore_stride(void) {
  if (polls <= LEISURE) return 0;
  uint64_t doublings = (polls - LEISURE) / DOUBLING;
  return shortest << (doublings < DOUBLINGS ? doublings : DOUBLINGS);
}
