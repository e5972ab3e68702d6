// Threads that can never go on, though others still wait for a time or for the outside.
//
// The owner of a lock is known, and so is the thread whose end another one waits for. If these lead from a thread back to
// itself, or to a thread that has ended, no time and no client helps. Which thread would signal a condition, a semaphore
// or a futex is not known: there only the number of jumps of time says that none will.

#include "exploring.h"

#include <linux/futex.h>

static const struct explored *with_id(uint32_t id) {
  for (uint32_t i = 0; i < explored_live_count; i++)
    if (explored_live[i]->id == id) return explored_live[i];
  for (uint32_t i = 0; i < explored_thread_count; i++)
    if (explored_threads[i].id == id && explored_threads[i].state == CONCOURSE_EXPLORING_ENDED) return &explored_threads[i];
  return NULL;
}

/// glibc's bits of a mutex: a robust one can be had when its owner ends, and another process may be the owner of a shared one.
enum { ROBUST = 16, SHARED = 128 };

/// The thread that alone could let this one go on; NULL if that is not known.
static const struct explored *awaited(const struct explored *thread) {
  if (thread->state != CONCOURSE_EXPLORING_WAITING || thread->deadline != NEVER || thread->wakes != WAKES_NONE) return NULL;
  uint32_t owner = 0;
  switch (thread->operation) {
    case OP_JOIN: return (const struct explored *)thread->object;
    case OP_LOCK: {
      const pthread_mutex_t *mutex = (const pthread_mutex_t *)thread->object;
      if (!(mutex->__data.__kind & (ROBUST | SHARED))) owner = (uint32_t)mutex->__data.__owner;
      break;
    }
    case OP_READ_LOCK: case OP_WRITE_LOCK: {
      const pthread_rwlock_t *lock = (const pthread_rwlock_t *)thread->object;
      if (!lock->__data.__shared) owner = (uint32_t)lock->__data.__cur_writer;
      break;
    }
    // ORDERING: relaxed; no other thread runs.
    case OP_FUTEX_LOCK: owner = __atomic_load_n((const uint32_t *)thread->object, __ATOMIC_RELAXED) & FUTEX_TID_MASK; break;
    default: break;
  }
  return owner ? with_id(owner) : NULL;
}

const struct explored *explore_find_cycle(void) {
  for (uint32_t i = 0; i < explored_live_count; i++) {
    const struct explored *first = explored_live[i], *next = awaited(first);
    for (uint32_t k = 0; next && k < explored_live_count; k++, next = awaited(next)) {
      if (next == first) return first;
      // The end of a thread lets those go on that wait for it, but not those that wait for a lock it has left.
      if (next->state == CONCOURSE_EXPLORING_ENDED) return first;
    }
  }
  return NULL;
}

bool explore_is_left_behind(void) {
  // A run that makes so many jumps would come to its limit of steps. With no limit it may last.
  enum { PART = 8 };
  uint64_t most = explored_file->step_limit / PART;
  if (most == 0 || explored_jumps <= most) return false;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    const struct explored *thread = explored_live[i];
    if (thread->state != CONCOURSE_EXPLORING_WAITING || thread->deadline != NEVER || thread->wakes != WAKES_NONE) continue;
    // Servers for ever: threads that wait for those, the main queue, and timers that call functions.
    bool serves = thread->operation == OP_JOIN || thread->operation == OP_TIMER || thread->serves_main;
    if (!serves && explore_is_programs(thread) && explored_jumps - thread->jumps > most) return true;
  }
  return false;
}
