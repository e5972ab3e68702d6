// The C library's locks. Each keeps the real lock's state: a call tries the real one, and waits in the schedule where it
// would block. A release makes all waiting threads runnable; the schedule decides which of them tries first.

#include "exploring.h"

#include <semaphore.h>

// MARK: Mutexes

static int (*real_trylock)(pthread_mutex_t *);
static int (*real_unlock)(pthread_mutex_t *);
static int try_lock(pthread_mutex_t *mutex) {
  if (!real_trylock) real_trylock = explore_real("pthread_mutex_trylock");
  return real_trylock(mutex);
}
static int unlock(pthread_mutex_t *mutex) {
  if (!real_unlock) real_unlock = explore_real("pthread_mutex_unlock");
  int failure = real_unlock(mutex);
  explore_wake(mutex, INT32_MAX);
  return failure;
}

static int lock(struct explored *self, pthread_mutex_t *mutex, uint64_t deadline, const void *place) {
  int failure;
  while ((failure = try_lock(mutex)) == EBUSY) {
    bool checks = (mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK;
    if (checks && (uint32_t)mutex->__data.__owner == self->id) return EDEADLK;
    if (explore_wait(self, OP_LOCK, mutex, deadline, place) == ETIMEDOUT) return ETIMEDOUT;
  }
  return failure;
}

int explore_lock(struct explored *self, pthread_mutex_t *mutex, uint64_t deadline, const void *place) {
  explore_point(self, OP_LOCK, mutex, place);
  return lock(self, mutex, deadline, place);
}

int explore_try_lock(struct explored *self, pthread_mutex_t *mutex, const void *place) {
  explore_point(self, OP_TRYLOCK, mutex, place);
  int failure = try_lock(mutex);
  if (failure == EBUSY) explore_yield(self, OP_TRYLOCK, mutex, place);
  return failure;
}

int explore_unlock(struct explored *self, pthread_mutex_t *mutex, const void *place) {
  int failure = unlock(mutex);
  explore_point(self, OP_UNLOCK, mutex, place);
  return failure;
}

INTERPOSED(int, pthread_mutex_lock, pthread_mutex_t *mutex) {
  struct explored *self = explore_current();
  return self ? explore_lock(self, mutex, NEVER, HERE) : REAL(pthread_mutex_lock)(mutex);
}

EXPORTED int pthread_mutex_trylock(pthread_mutex_t *mutex) {
  struct explored *self = explore_current();
  return self ? explore_try_lock(self, mutex, HERE) : try_lock(mutex);
}

EXPORTED int pthread_mutex_unlock(pthread_mutex_t *mutex) {
  struct explored *self = explore_current();
  if (self) return explore_unlock(self, mutex, HERE);
  if (!real_unlock) real_unlock = explore_real("pthread_mutex_unlock");
  return real_unlock(mutex);
}

static int lock_until(struct explored *self, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time,
                      const void *place) {
  if (explore_is_time(time)) return explore_lock(self, mutex, explore_deadline(clock, time, true), place);
  // Only a call that would have to wait looks at the time.
  int failure = explore_try_lock(self, mutex, place);
  return failure == EBUSY ? EINVAL : failure;
}

INTERPOSED(int, pthread_mutex_clocklock, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time) {
  struct explored *self = explore_current();
  if (!self) return REAL(pthread_mutex_clocklock)(mutex, clock, time);
  return lock_until(self, mutex, clock, time, HERE);
}

INTERPOSED(int, pthread_mutex_timedlock, pthread_mutex_t *mutex, const struct timespec *time) {
  struct explored *self = explore_current();
  if (!self) return REAL(pthread_mutex_timedlock)(mutex, time);
  return lock_until(self, mutex, CLOCK_REALTIME, time, HERE);
}

// The kernel has released them when the next thread runs.
void explore_let_try_robust_locks(void) {
  for (uint32_t i = 0; i < explored_live_count; i++) {
    struct explored *thread = explored_live[i];
    if (thread->state != CONCOURSE_EXPLORING_WAITING || thread->operation != OP_LOCK) continue;
    // glibc's bit of robust mutexes.
    if (((const pthread_mutex_t *)thread->object)->__data.__kind & 16) explore_make_runnable(thread);
  }
}

// MARK: Conditions

// No thread waits for the real condition variable, so its state does not change.
int explore_await(struct explored *self, pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline,
                  const void *place) {
  explore_point(self, OP_COND_WAIT, condition, place);
  if (explored_races) explore_order_mutex(mutex, false);
  int failure = unlock(mutex);
  int result = failure == 0 ? explore_wait(self, OP_COND_WAIT, condition, deadline, place) : 0;
  if (failure == 0) failure = lock(self, mutex, NEVER, place);
  if (explored_races) explore_order_mutex(mutex, true);
  explore_test_cancel(self);
  return failure != 0 ? failure : result == ETIMEDOUT ? ETIMEDOUT : 0;
}

INTERPOSED(int, pthread_cond_wait, pthread_cond_t *condition, pthread_mutex_t *mutex) {
  struct explored *self = explore_current();
  if (!self) return REAL(pthread_cond_wait)(condition, mutex);
  return explore_await(self, condition, mutex, NEVER, HERE);
}

INTERPOSED(int, pthread_cond_timedwait, pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time) {
  struct explored *self = explore_current();
  if (self && !explore_is_time(time)) return EINVAL;
  if (!self) return REAL(pthread_cond_timedwait)(condition, mutex, time);
  // glibc notes the clock in the second bit.
  clockid_t clock = condition->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
  return explore_await(self, condition, mutex, explore_deadline(clock, time, true), HERE);
}

INTERPOSED(int, pthread_cond_clockwait, pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
           const struct timespec *time) {
  struct explored *self = explore_current();
  if (self && !explore_is_time(time)) return EINVAL;
  if (!self) return REAL(pthread_cond_clockwait)(condition, mutex, clock, time);
  return explore_await(self, condition, mutex, explore_deadline(clock, time, true), HERE);
}

int explore_signal(struct explored *self, pthread_cond_t *condition, bool all, const void *place) {
  explore_wake(condition, all ? INT32_MAX : 1);
  explore_point(self, all ? OP_COND_BROADCAST : OP_COND_SIGNAL, condition, place);
  return 0;
}

INTERPOSED(int, pthread_cond_signal, pthread_cond_t *condition) {
  struct explored *self = explore_current();
  return self ? explore_signal(self, condition, false, HERE) : REAL(pthread_cond_signal)(condition);
}

INTERPOSED(int, pthread_cond_broadcast, pthread_cond_t *condition) {
  struct explored *self = explore_current();
  return self ? explore_signal(self, condition, true, HERE) : REAL(pthread_cond_broadcast)(condition);
}

// MARK: Readers and writers

typedef int lock_function(pthread_rwlock_t *);

static int hold(struct explored *self, lock_function *try, uint16_t operation, pthread_rwlock_t *object, uint64_t deadline,
                const void *place) {
  int failure;
  explore_point(self, operation, object, place);
  while ((failure = try(object)) == EBUSY) {
    if ((uint32_t)object->__data.__cur_writer == self->id) failure = EDEADLK;
    if (failure == EDEADLK) break;
    if (operation == OP_WRITE_LOCK) self->wanted_lock = object;
    failure = explore_wait(self, operation, object, deadline, place);
    if (failure == ETIMEDOUT) break;
  }
  // Readers may have waited for this writer.
  if (self->wanted_lock && failure != 0) explore_wake(object, INT32_MAX);
  self->wanted_lock = NULL;
  return failure;
}

/// Whether a reader has to let a writer go first, which waits, as the lock's attributes say.
static bool is_kept_for_writer(const pthread_rwlock_t *object) {
  if (object->__data.__flags != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) return false;
  for (uint32_t i = 0; i < explored_live_count; i++)
    if (explored_live[i]->wanted_lock == object) return true;
  return false;
}

#define READERS_OR_WRITERS(kind, operation)                                                                    \
  static lock_function *real_try_##kind;                                                                       \
  static int try_##kind(pthread_rwlock_t *object) {                                                            \
    if (!real_try_##kind) real_try_##kind = (lock_function *)explore_real("pthread_rwlock_try" #kind);         \
    bool is_kept = operation == OP_READ_LOCK && explore_current() && is_kept_for_writer(object);               \
    return is_kept ? EBUSY : real_try_##kind(object);                                                          \
  }                                                                                                            \
  INTERPOSED(int, pthread_rwlock_##kind, pthread_rwlock_t *object) {                                           \
    struct explored *self = explore_current();                                                                 \
    if (!self) return REAL(pthread_rwlock_##kind)(object);                                                     \
    return hold(self, try_##kind, operation, object, NEVER, HERE);                                             \
  }                                                                                                            \
  EXPORTED int pthread_rwlock_try##kind(pthread_rwlock_t *object) {                                            \
    struct explored *self = explore_current();                                                                 \
    if (self) explore_point(self, operation, object, HERE);                                                    \
    int failure = try_##kind(object);                                                                          \
    if (self && failure == EBUSY) explore_yield(self, operation, object, HERE);                                \
    return failure;                                                                                            \
  }                                                                                                            \
  INTERPOSED(int, pthread_rwlock_timed##kind, pthread_rwlock_t *object, const struct timespec *time) {         \
    struct explored *self = explore_current();                                                                 \
    if (!self) return REAL(pthread_rwlock_timed##kind)(object, time);                                          \
    if (!explore_is_time(time)) return EINVAL;                                                                 \
    return hold(self, try_##kind, operation, object, explore_deadline(CLOCK_REALTIME, time, true), HERE);      \
  }                                                                                                            \
  INTERPOSED(int, pthread_rwlock_clock##kind, pthread_rwlock_t *object, clockid_t clock,                       \
             const struct timespec *time) {                                                                    \
    struct explored *self = explore_current();                                                                 \
    if (!self) return REAL(pthread_rwlock_clock##kind)(object, clock, time);                                   \
    if (!explore_is_time(time)) return EINVAL;                                                                 \
    return hold(self, try_##kind, operation, object, explore_deadline(clock, time, true), HERE);               \
  }

READERS_OR_WRITERS(rdlock, OP_READ_LOCK)
READERS_OR_WRITERS(wrlock, OP_WRITE_LOCK)

INTERPOSED(int, pthread_rwlock_unlock, pthread_rwlock_t *object) {
  struct explored *self = explore_current();
  int failure = REAL(pthread_rwlock_unlock)(object);
  if (!self) return failure;
  explore_wake(object, INT32_MAX);
  explore_point(self, OP_RW_UNLOCK, object, HERE);
  return failure;
}

// MARK: Once

// glibc's states: 0, in progress, and done.
enum { ONCE_IN_PROGRESS = 1, ONCE_DONE = 2 };

static void abandon(pthread_once_t **once) {
  if (!*once) return;
  **once = 0;
  explore_wake(*once, INT32_MAX);
}

// In place of the thread sanitizer's (races.c).
static int is_done(const pthread_once_t *once) {
  if (explored_races) explore_order_lock(once);
  return 0;
}

int explore_once(struct explored *self, pthread_once_t *once, void (*body)(void), const void *place) {
  if (*once == ONCE_DONE) return is_done(once);
  explore_point(self, OP_ONCE, once, place);
  while (*once & ONCE_IN_PROGRESS) explore_wait(self, OP_ONCE, once, NEVER, place);
  if (*once == ONCE_DONE) return is_done(once);
  *once = ONCE_IN_PROGRESS;
  // The body may throw.
  __attribute__((cleanup(abandon))) pthread_once_t *running = once;
  body();
  running = NULL;
  if (explored_races) explore_order_unlock(once);
  *once = ONCE_DONE;
  explore_wake(once, INT32_MAX);
  explore_point(self, OP_ONCE, once, place);
  return 0;
}

INTERPOSED(int, pthread_once, pthread_once_t *once, void (*body)(void)) {
  struct explored *self = explore_current();
  return self ? explore_once(self, once, body, HERE) : REAL(pthread_once)(once, body);
}

// MARK: Spin locks

static int (*real_spin_try)(pthread_spinlock_t *);
static int try_spin(pthread_spinlock_t *spin) {
  if (!real_spin_try) real_spin_try = (int (*)(pthread_spinlock_t *))explore_real("pthread_spin_trylock");
  return real_spin_try(spin);
}

INTERPOSED(int, pthread_spin_lock, pthread_spinlock_t *spin) {
  struct explored *self = explore_current();
  if (!self) return REAL(pthread_spin_lock)(spin);
  explore_point(self, OP_SPIN_LOCK, (void *)spin, HERE);
  while (try_spin(spin) == EBUSY) explore_wait(self, OP_SPIN_LOCK, (void *)spin, NEVER, HERE);
  return 0;
}

EXPORTED int pthread_spin_trylock(pthread_spinlock_t *spin) {
  struct explored *self = explore_current();
  if (self) explore_point(self, OP_SPIN_LOCK, (void *)spin, HERE);
  int failure = try_spin(spin);
  if (self && failure == EBUSY) explore_yield(self, OP_SPIN_LOCK, (void *)spin, HERE);
  return failure;
}

INTERPOSED(int, pthread_spin_unlock, pthread_spinlock_t *spin) {
  struct explored *self = explore_current();
  int failure = REAL(pthread_spin_unlock)(spin);
  if (!self) return failure;
  explore_wake((void *)spin, INT32_MAX);
  explore_point(self, OP_SPIN_UNLOCK, (void *)spin, HERE);
  return failure;
}

// MARK: Barriers

// In the real barrier's memory: how many threads it needs, as glibc has written it, and how many have come. glibc's own
// waits would block in the kernel, so they are not used. The last to come may destroy the barrier, so those that wait do
// not look at it again.
struct barrier {
  uint32_t come, unused, needed;
};

INTERPOSED(int, pthread_barrier_wait, pthread_barrier_t *object) {
  struct explored *self = explore_current();
  if (!self) return REAL(pthread_barrier_wait)(object);
  struct barrier *barrier = (struct barrier *)object;
  explore_point(self, OP_BARRIER, barrier, HERE);
  if (++barrier->come == barrier->needed) {
    barrier->come = 0;
    for (uint32_t i = 0; i < explored_live_count; i++)
      if (explored_live[i]->barrier == barrier) explored_live[i]->barrier = NULL;
    explore_wake(barrier, INT32_MAX);
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  self->barrier = barrier;
  while (self->barrier) explore_wait(self, OP_BARRIER, barrier, NEVER, HERE);
  return 0;
}

INTERPOSED(int, pthread_barrier_destroy, pthread_barrier_t *object) {
  // The real one would wait for threads that have never come to it.
  if (explored_is_on && explored_self) return 0;
  return REAL(pthread_barrier_destroy)(object);
}

// MARK: Semaphores

static int (*real_sem_try)(sem_t *);
static int try_wait(sem_t *semaphore) {
  if (!real_sem_try) real_sem_try = (int (*)(sem_t *))explore_real("sem_trywait");
  return real_sem_try(semaphore);
}

// With a time limit the kernel does not restart the call after a handler.
static int take(struct explored *self, sem_t *semaphore, uint64_t deadline, const void *place) {
  explore_point(self, OP_SEM_WAIT, semaphore, place);
  for (;;) {
    if (try_wait(semaphore) == 0) return 0;
    if (errno != EAGAIN) return -1;
    int result = explore_wait(self, OP_SEM_WAIT, semaphore, deadline, place);
    explore_test_cancel(self);
    if (result == 0 || (result == EINTR && deadline == NEVER && explore_goes_on(self))) continue;
    errno = result;
    return -1;
  }
}

INTERPOSED(int, sem_wait, sem_t *semaphore) {
  struct explored *self = explore_current();
  return self ? take(self, semaphore, NEVER, HERE) : REAL(sem_wait)(semaphore);
}

INTERPOSED(int, sem_timedwait, sem_t *semaphore, const struct timespec *time) {
  struct explored *self = explore_current();
  if (!self) return REAL(sem_timedwait)(semaphore, time);
  if (!explore_is_time(time)) return (int)explore_result(-EINVAL);
  return take(self, semaphore, explore_deadline(CLOCK_REALTIME, time, true), HERE);
}

INTERPOSED(int, sem_clockwait, sem_t *semaphore, clockid_t clock, const struct timespec *time) {
  struct explored *self = explore_current();
  if (!self) return REAL(sem_clockwait)(semaphore, clock, time);
  if (!explore_is_time(time)) return (int)explore_result(-EINVAL);
  return take(self, semaphore, explore_deadline(clock, time, true), HERE);
}

EXPORTED int sem_trywait(sem_t *semaphore) {
  struct explored *self = explore_current();
  if (self) explore_point(self, OP_SEM_WAIT, semaphore, HERE);
  int result = try_wait(semaphore);
  if (self && result != 0) explore_yield(self, OP_SEM_WAIT, semaphore, HERE);
  return result;
}

INTERPOSED(int, sem_post, sem_t *semaphore) {
  struct explored *self = explore_current();
  int result = REAL(sem_post)(semaphore);
  if (!self) return result;
  explore_wake(semaphore, 1);
  explore_point(self, OP_SEM_POST, semaphore, HERE);
  return result;
}
