// The threads of C11. In glibc their objects are those of POSIX, so each function does what the other one does, and its
// result is converted. The thread sanitizer knows those of POSIX only, so they are called where it must see them (races.c).

#include "exploring.h"

#include <stdlib.h>
#include <threads.h>

static int converted(int failure) {
  switch (failure) {
    case 0: return thrd_success;
    case EBUSY: return thrd_busy;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
  }
}

// MARK: Threads

/// What a thread begins with, from its creator.
struct beginning {
  thrd_start_t entry;
  void *argument;
};

static void *begin(void *argument) {
  struct beginning beginning = *(struct beginning *)argument;
  free(argument);
  return (void *)(intptr_t)beginning.entry(beginning.argument);
}

INTERPOSED(int, thrd_create, thrd_t *handle, thrd_start_t entry, void *argument) {
  struct explored *self = explore_current();
  if (!self) return REAL(thrd_create)(handle, entry, argument);
  struct beginning *beginning = malloc(sizeof *beginning);
  if (!beginning) return thrd_nomem;
  *beginning = (struct beginning){entry, argument};
  int failure = explore_create(self, handle, NULL, begin, beginning, false, HERE);
  if (failure != 0) free(beginning);
  // As glibc has it: the system has no memory for another thread.
  return failure == EAGAIN ? thrd_nomem : converted(failure);
}

INTERPOSED(int, thrd_join, thrd_t handle, int *result) {
  struct explored *self = explore_current();
  if (!self) return REAL(thrd_join)(handle, result);
  void *word = NULL;
  int failure = explored_races ? pthread_join(handle, &word) : explore_join(self, handle, &word, HERE);
  if (result) *result = (int)(intptr_t)word;
  return converted(failure);
}

EXPORTED int thrd_detach(thrd_t handle) { return converted(pthread_detach(handle)); }

// MARK: Locks

INTERPOSED(int, mtx_lock, mtx_t *mutex) {
  struct explored *self = explore_current();
  if (!self) return REAL(mtx_lock)(mutex);
  if (explored_races) return converted(pthread_mutex_lock((pthread_mutex_t *)mutex));
  return converted(explore_lock(self, (pthread_mutex_t *)mutex, NEVER, HERE));
}

INTERPOSED(int, mtx_timedlock, mtx_t *mutex, const struct timespec *time) {
  struct explored *self = explore_current();
  if (!self) return REAL(mtx_timedlock)(mutex, time);
  if (explored_races) return converted(pthread_mutex_timedlock((pthread_mutex_t *)mutex, time));
  return converted(explore_lock(self, (pthread_mutex_t *)mutex, explore_deadline(CLOCK_REALTIME, time, true), HERE));
}

INTERPOSED(int, mtx_trylock, mtx_t *mutex) {
  struct explored *self = explore_current();
  if (!self) return REAL(mtx_trylock)(mutex);
  if (explored_races) return converted(pthread_mutex_trylock((pthread_mutex_t *)mutex));
  return converted(explore_try_lock(self, (pthread_mutex_t *)mutex, HERE));
}

INTERPOSED(int, mtx_unlock, mtx_t *mutex) {
  struct explored *self = explore_current();
  if (!self) return REAL(mtx_unlock)(mutex);
  if (explored_races) return converted(pthread_mutex_unlock((pthread_mutex_t *)mutex));
  return converted(explore_unlock(self, (pthread_mutex_t *)mutex, HERE));
}

// MARK: Conditions

INTERPOSED(int, cnd_wait, cnd_t *condition, mtx_t *mutex) {
  struct explored *self = explore_current();
  if (!self) return REAL(cnd_wait)(condition, mutex);
  return converted(explore_await(self, (pthread_cond_t *)condition, (pthread_mutex_t *)mutex, NEVER, HERE));
}

INTERPOSED(int, cnd_timedwait, cnd_t *condition, mtx_t *mutex, const struct timespec *time) {
  struct explored *self = explore_current();
  if (!self) return REAL(cnd_timedwait)(condition, mutex, time);
  uint64_t deadline = explore_deadline(CLOCK_REALTIME, time, true);
  return converted(explore_await(self, (pthread_cond_t *)condition, (pthread_mutex_t *)mutex, deadline, HERE));
}

INTERPOSED(int, cnd_signal, cnd_t *condition) {
  struct explored *self = explore_current();
  if (!self) return REAL(cnd_signal)(condition);
  return converted(explore_signal(self, (pthread_cond_t *)condition, false, HERE));
}

INTERPOSED(int, cnd_broadcast, cnd_t *condition) {
  struct explored *self = explore_current();
  if (!self) return REAL(cnd_broadcast)(condition);
  return converted(explore_signal(self, (pthread_cond_t *)condition, true, HERE));
}

// MARK: Once, and waits of one thread

INTERPOSED(void, call_once, once_flag *once, void (*body)(void)) {
  struct explored *self = explore_current();
  if (!self) return REAL(call_once)(once, body);
  explore_once(self, (pthread_once_t *)once, body, HERE);
}

INTERPOSED(void, thrd_yield, void) {
  struct explored *self = explore_current();
  if (!self) return REAL(thrd_yield)();
  explore_yield(self, OP_YIELD, NULL, HERE);
}

INTERPOSED(int, thrd_sleep, const struct timespec *time, struct timespec *rest) {
  struct explored *self = explore_current();
  return self ? explore_nanosleep(self, time, rest, HERE) : REAL(thrd_sleep)(time, rest);
}
