// Items on one thread, outside of a run: a process that forks a child for each run must not have a second thread, which the
// children would not have, and must leave the engine unused. While items are held, `dispatch_async_f`, which Swift's jobs
// come through, only lists them, and `dispatch_main` runs them.

#include "exploring.h"

#include <sched.h>
#include <stdlib.h>

void explored_dispatch_async_f(void *queue, void *context, void (*function)(void *));
_Noreturn void explored_dispatch_main(void);
void held_dispatch_async_f(void *queue, void *context, void (*function)(void *));
_Noreturn void held_dispatch_main(void);

struct item {
  void *queue, *context;
  void (*function)(void *);
};
// GUARDED BY `locked`: the process may have threads, and forks only without them.
static struct item *items;
static size_t first, count, capacity;
// Whether items are held. Cleared under the lock; a child has no other thread when it reads it.
static bool holds;
static bool locked;

// ORDERING: acquiring and releasing; as any lock. `holds` is relaxed: it is read again under the lock.
static void lock(void) {
  while (__atomic_test_and_set(&locked, __ATOMIC_ACQUIRE)) sched_yield();
}
static void unlock(void) { __atomic_clear(&locked, __ATOMIC_RELEASE); }
static bool is_holding(void) { return __atomic_load_n(&holds, __ATOMIC_RELAXED); }

EXPORTED void concourse_exploring_hold_items(void) { holds = explored_is_fixed = true; }

void explore_drop_items(void) {
  holds = false;
  first = count;
}

void held_dispatch_async_f(void *queue, void *context, void (*function)(void *)) {
  if (!is_holding()) return explored_dispatch_async_f(queue, context, function);
  lock();
  bool is_held = is_holding();
  if (is_held) {
    if (count == capacity) {
      capacity = capacity ? capacity * 2 : 64;
      items = realloc(items, capacity * sizeof *items);
      if (!items) abort();
    }
    items[count++] = (struct item){queue, context, function};
  }
  unlock();
  if (!is_held) explored_dispatch_async_f(queue, context, function);
}

// Takes the oldest item. If there is none, items are held no more.
static bool take(struct item *item) {
  lock();
  bool is_taken = first < count;
  if (is_taken) *item = items[first++];
  // ORDERING: relaxed; see above.
  else __atomic_store_n(&holds, false, __ATOMIC_RELAXED);
  unlock();
  return is_taken;
}

void held_dispatch_main(void) {
  struct item item;
  while (take(&item)) item.function(item.context);
  // Either this is a run now, or the program waits for something else than an item.
  explored_dispatch_main();
}
