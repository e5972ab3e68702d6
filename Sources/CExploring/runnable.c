// Which threads can go on. One that waits for an object is not runnable until another one wakes the object, or its deadline
// passes. Descriptors and children are looked at in each decision while threads wait for them. Pipes, eventfds, and sockets
// within the machine are ready at the latest when the call that makes them so returns, so this is deterministic.
//
// If no thread can go on, time jumps to the next deadline. If there is none either, the run is over.

#include "exploring.h"

/// How far time may jump, in all, while a thread could run. Else a program that waits for a second with a time limit of
/// ten would see the limit pass.
static const uint64_t most_early = 10000000;
static uint64_t early;
/// Jumps in a row after which none of the program has run. After MONITOR_JUMPS the engine's own deadlines (its monitor
/// looks each millisecond) are passed over for the next one of the program. After IDLE_JUMPS without such a deadline, or
/// TIMER_JUMPS with one, the run ends.
enum { MONITOR_JUMPS = 200, IDLE_JUMPS = 2000, TIMER_JUMPS = 200000 };
static uint32_t idle_jumps;
uint64_t explored_jumps;

// MARK: Waking

void explore_make_runnable(struct explored *thread) {
  thread->state = CONCOURSE_EXPLORING_RUNNABLE;
  thread->deadline = NEVER;
  thread->wakes = WAKES_NONE;
}

void explore_interrupt(struct explored *thread) {
  if (thread->state != CONCOURSE_EXPLORING_WAITING) return;
  explore_make_runnable(thread);
  thread->interrupted = true;
  thread->restarts = false;
}

void explore_interrupt_by(struct explored *thread, int signal) {
  if (thread->state != CONCOURSE_EXPLORING_WAITING || !explore_takes(thread, signal)) return;
  explore_interrupt(thread);
  thread->restarts = explore_restarts_after(signal);
}

int explore_wake(const void *object, int count) { return explore_wake_bits(object, count, UINT32_MAX); }

int explore_wake_bits(const void *object, int count, uint32_t bits) {
  int woken = 0;
  while (woken < count) {
    struct explored *longest = NULL;
    for (uint32_t i = 0; i < explored_live_count; i++) {
      struct explored *thread = explored_live[i];
      if (thread->state == CONCOURSE_EXPLORING_WAITING && thread->object == (uintptr_t)object &&
          (thread->wakes & ~WAKES_LOCK) == 0 && thread->bits & bits && (!longest || thread->arrival < longest->arrival))
        longest = thread;
    }
    if (!longest) break;
    explore_make_runnable(longest);
    woken++;
  }
  return woken;
}

// MARK: Deadlines

bool explore_is_programs(const struct explored *thread) { return !thread->is_engine || thread->depth > 0; }

static uint64_t first_timer(void) {
  uint64_t timer = explore_timer_deadline(), alarm = explore_alarm_deadline();
  return timer < alarm ? timer : alarm;
}

uint64_t explore_earliest_deadline(bool of_program) {
  uint64_t earliest = first_timer();
  for (uint32_t i = 0; i < explored_live_count; i++) {
    const struct explored *thread = explored_live[i];
    if (of_program && !explore_is_programs(thread)) continue;
    if (thread->state == CONCOURSE_EXPLORING_WAITING && thread->deadline < earliest) earliest = thread->deadline;
  }
  return earliest;
}

uint64_t explore_other_deadline(void) {
  uint64_t latest = first_timer();
  for (uint32_t i = 0; i < explored_live_count; i++) {
    const struct explored *thread = explored_live[i];
    if (!explore_is_programs(thread) || explore_polls(thread)) continue;
    uint64_t next = thread->state == CONCOURSE_EXPLORING_RUNNABLE ? 0 : thread->deadline;
    if (next < latest) latest = next;
  }
  return latest;
}

// Threads that poll may sleep for longer than they asked, but no other thread may: else a thread that waits with a time
// limit would see it pass before what it waits for.
uint64_t explore_with_stride(uint64_t deadline) {
  uint64_t latest = explore_other_deadline(), wanted = deadline + explore_stride();
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
    explore_make_runnable(thread);
    thread->timed_out = true;
  }
}

bool explore_may_advance(void) {
  if (explored_file->real_time) return false;
  uint64_t deadline = explore_earliest_deadline(false), now = explore_now();
  return deadline != NEVER && (deadline <= now || deadline - now <= most_early - early);
}

void explore_advance_early(void) {
  uint64_t deadline = explore_earliest_deadline(false), now = explore_now();
  if (deadline > now) early += deadline - now;
  explore_advance(deadline);
}

// MARK: When no thread can go on

static bool wake_for_child(void) {
  bool found = false;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    struct explored *thread = explored_live[i];
    if (thread->state != CONCOURSE_EXPLORING_WAITING || !(thread->wakes & WAKES_CHILD)) continue;
    explore_make_runnable(thread);
    found = true;
  }
  return found;
}

/// Locks of files that have been given up meanwhile.
static bool wake_for_locks(void) {
  bool found = false;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    struct explored *thread = explored_live[i];
    bool waits = thread->state == CONCOURSE_EXPLORING_WAITING && thread->wakes & WAKES_LOCK;
    if (!waits || !explore_take_file_lock(thread)) continue;
    explore_make_runnable(thread);
    found = true;
  }
  return found;
}

/// The thread that has waited longest for all others to be idle. The engine's monitor gets some looks before that, until
/// something is due for the program: it may find work behind a blocked worker.
static bool wake_for_idleness(void) {
  enum { LOOKS = 20, SOON = 5000000 };
  uint64_t look = explore_earliest_deadline(false);
  if (idle_jumps < LOOKS && look < explore_earliest_deadline(true) && look <= explore_now() + SOON) return false;
  struct explored *longest = NULL;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    struct explored *thread = explored_live[i];
    bool waits = thread->state == CONCOURSE_EXPLORING_WAITING && thread->wakes & WAKES_IDLE;
    if (waits && (!longest || thread->arrival < longest->arrival)) longest = thread;
  }
  if (longest) explore_make_runnable(longest);
  return longest;
}

bool explored_waits;

static bool await_children(void) {
  bool ended;
  for (int i = 0; i < 2500 && explore_has_children(&ended); i++) {
    explored_file->leaks |= CONCOURSE_EXPLORING_LEAK_CHILD_PROCESS;
    explore_await_rest();
    explore_has_children(&ended);
    bool child = ended && wake_for_child(), signal = ended && explore_deliver_signals();
    bool lock = wake_for_locks();
    if (explore_poll(0) || child || signal || lock) return true;
    if (ended) return false;
  }
  return false;
}

static bool await_outside(void) {
  // What the outside sends may be on its way.
  // ORDERING: relaxed, both; the watchdog looks again and again.
  __atomic_store_n(&explored_waits, true, __ATOMIC_RELAXED);
  bool found = false;
  for (int i = 0; i < 20 && !found; i++) found = explore_poll(10) || wake_for_locks();
  __atomic_store_n(&explored_waits, false, __ATOMIC_RELAXED);
  return found || explore_deliver_signals();
}

void explore_end_idleness(void) { idle_jumps = 0; }

void explore_idle(void) {
  bool ended;
  if (explore_deliver_signals() || (!explore_has_children(&ended) && wake_for_locks())) return;
  // ORDERING: relaxed, all; the watchdog looks again and again.
  __atomic_store_n(&explored_waits, true, __ATOMIC_RELAXED);
  bool found = await_children();
  __atomic_store_n(&explored_waits, false, __ATOMIC_RELAXED);
  if (found || wake_for_idleness()) return;
  const struct explored *stuck = explore_find_cycle();
  if (stuck) explore_finish(CONCOURSE_EXPLORING_DEADLOCK, stuck->number, 0);
  uint64_t deadline = explore_earliest_deadline(false);
  // What comes from another machine comes in real time.
  if (explored_file->leaks & CONCOURSE_EXPLORING_LEAK_OUTSIDE_SOCKET && await_outside()) return;
  if (deadline != NEVER && !explored_file->real_time) {
    early = 0;
    idle_jumps++;
    explored_jumps++;
    if (explore_is_left_behind() && explore_outside() != OUTSIDE_OTHERS) explore_finish_waiting(CONCOURSE_EXPLORING_HANG);
    if (idle_jumps > MONITOR_JUMPS) {
      uint64_t programs = explore_earliest_deadline(true);
      if (programs != NEVER) deadline = programs;
      else if (idle_jumps > IDLE_JUMPS) explore_finish(CONCOURSE_EXPLORING_DEADLOCK, 0, 0);
      if (idle_jumps > TIMER_JUMPS) explore_finish(CONCOURSE_EXPLORING_HANG, 0, 0);
    }
  }
  if (deadline != NEVER) return explore_advance(explore_with_stride(deadline));
  if (await_outside()) return;
  explore_finish_waiting(CONCOURSE_EXPLORING_DEADLOCK);
}

// MARK: All that can

uint32_t explore_gather(uint16_t *candidates, const struct explored *excluded) {
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

void explore_forget(const struct explored *thread) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < explored_live_count; i++)
    if (explored_live[i] != thread) explored_live[kept++] = explored_live[i];
  explored_live_count = kept;
}
