// `syscall`: futexes, by which the engine and Swift's `Mutex` wait, and the few other calls that would tell one run from
// another.

#include "exploring.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>

enum { COMMAND = FUTEX_CMD_MASK };

static long refused(int failure) {
  errno = failure;
  return -1;
}

// Before a blocked thread searches for deadlocks, the engine lets it sleep for 40 ms and a part more that follows from the
// kernel's id of the thread (BlockedThreads.swift), which differs in each run.
static uint64_t without_spread(uint64_t deadline, const void *place) {
  const uint64_t least = 40000000, most = 60000000;
  uint64_t now = explore_now();
  if (deadline == NEVER || deadline < now + least - 1000000 || deadline > now + most) return deadline;
  return explore_is_own_code(((void *const *)place)[1]) ? now + least : deadline;
}

static long wait_on(struct explored *self, const uint32_t *word, uint32_t expected, uint32_t bits, uint64_t deadline,
                    const void *place) {
  if (bits == 0) return refused(EINVAL);
  explore_point(self, OP_FUTEX_WAIT, word, place);
  // ORDERING: sequentially consistent, as the kernel's look.
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != expected) return refused(EAGAIN);
  for (;;) {
    int result = explore_wait_bits(self, OP_FUTEX_WAIT, word, bits, without_spread(deadline, place), place);
    if (result == 0) return 0;
    // The kernel restarts the call, which looks again, if it has no time limit.
    if (result != EINTR || deadline != NEVER || !explore_goes_on(self)) return refused(result);
    // ORDERING: sequentially consistent, as the kernel's look.
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != expected) return refused(EAGAIN);
  }
}

// A lock whose word has the owner's id, and the kernel's bit for waiters: both as the kernel would leave them, since
// `FUTEX_UNLOCK_PI` is only called if the bit is set.
static long lock(struct explored *self, uint32_t *word, bool tries, uint64_t deadline, const void *place) {
  explore_point(self, OP_FUTEX_LOCK, word, place);
  for (;;) {
    // ORDERING: sequentially consistent, all; as the kernel's.
    uint32_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    if ((seen & FUTEX_TID_MASK) == 0) {
      __atomic_store_n(word, self->id | (seen & FUTEX_WAITERS), __ATOMIC_SEQ_CST);
      if (explored_races) explore_order_lock(word);
      return 0;
    }
    if ((seen & FUTEX_TID_MASK) == self->id) return refused(EDEADLK);
    if (tries) {
      explore_yield(self, OP_FUTEX_LOCK, word, place);
      return refused(EAGAIN);
    }
    __atomic_store_n(word, seen | FUTEX_WAITERS, __ATOMIC_SEQ_CST);
    if (explore_wait(self, OP_FUTEX_LOCK, word, deadline, place) == ETIMEDOUT) return refused(ETIMEDOUT);
  }
}

static long unlock(struct explored *self, uint32_t *word, const void *place) {
  // ORDERING: sequentially consistent, both; as the kernel's.
  if ((__atomic_load_n(word, __ATOMIC_SEQ_CST) & FUTEX_TID_MASK) != self->id) return refused(EPERM);
  if (explored_races) explore_order_unlock(word);
  // Those who still wait set the bit again.
  __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
  explore_wake(word, INT32_MAX);
  explore_point(self, OP_FUTEX_UNLOCK, word, place);
  return 0;
}

static long futex(struct explored *self, long *a, const void *place) {
  uint32_t *word = (uint32_t *)a[0];
  const struct timespec *time = (const struct timespec *)a[3];
  clockid_t clock = a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  switch (a[1] & COMMAND) {
    case FUTEX_WAIT: case FUTEX_WAIT_BITSET: case FUTEX_LOCK_PI: case FUTEX_LOCK_PI2:
      if (!explore_is_duration(time)) return refused(EINVAL);
  }
  switch (a[1] & COMMAND) {
    case FUTEX_WAIT: return wait_on(self, word, (uint32_t)a[2], UINT32_MAX, explore_deadline(clock, time, false), place);
    case FUTEX_WAIT_BITSET:
      return wait_on(self, word, (uint32_t)a[2], (uint32_t)a[5], explore_deadline(clock, time, true), place);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
      uint32_t bits = (a[1] & COMMAND) == FUTEX_WAKE ? UINT32_MAX : (uint32_t)a[5];
      if (bits == 0) return refused(EINVAL);
      long woken = explore_wake_bits(word, (int)a[2], bits);
      explore_point(self, OP_FUTEX_WAKE, word, place);
      return woken;
    }
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE: {
      // Those that would be moved look for themselves.
      long woken = explore_wake(word, INT32_MAX);
      explore_point(self, OP_FUTEX_WAKE, word, place);
      return woken;
    }
    case FUTEX_LOCK_PI: return lock(self, word, false, explore_deadline(CLOCK_REALTIME, time, true), place);
    case FUTEX_LOCK_PI2: return lock(self, word, false, explore_deadline(clock, time, true), place);
    case FUTEX_TRYLOCK_PI: return lock(self, word, true, NEVER, place);
    case FUTEX_UNLOCK_PI: return unlock(self, word, place);
    default: return explore_result(explore_system(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]));
  }
}

EXPORTED long syscall(long number, ...) {
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  struct explored *self = explore_current();
  if (self) switch (number) {
      case SYS_futex: return futex(self, a, HERE);
      // Its completions would come whenever the kernel has them. The engine does without.
      case SYS_io_uring_setup: return refused(ENOSYS);
      case SYS_getrandom: explore_fill_random((void *)a[0], (size_t)a[1]); return a[1];
      case SYS_clock_gettime: return clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
      case SYS_sched_yield: explore_yield(self, OP_YIELD, NULL, HERE); return 0;
      case SYS_clone: {
        // A child that the C library does not know of.
        long result = explore_result(explore_system(number, a[0], a[1], a[2], a[3], a[4], a[5]));
        if (result == 0) explore_leave_child();
        return result;
      }
      case SYS_tgkill: {
        long result = explore_result(explore_system(number, a[0], a[1], a[2], 0, 0, 0));
        explored_signals_sent = true;
        return result;
      }
      default: break;
    }
  return explore_result(explore_system(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

INTERPOSED(pid_t, _Fork, void) {
  pid_t child = REAL(_Fork)();
  if (child == 0) explore_leave_child();
  return child;
}

INTERPOSED(int, sched_yield, void) {
  struct explored *self = explore_current();
  if (!self) return REAL(sched_yield)();
  explore_yield(self, OP_YIELD, NULL, HERE);
  return 0;
}
