// Items on one thread, outside of a run: a process that forks a child for each run must not have a second thread, which the
// children would not have, and must leave the engine unused. While items are held, `dispatch_async_f`, which Swift's jobs
// come through, only lists them, and `dispatch_main` runs them.

#include "exploring.h"

#include <stdlib.h>

void explored_dispatch_async_f(void *queue, void *context, void (*function)(void *));
_Noreturn void explored_dispatch_main(void);
void held_dispatch_async_f(void *queue, void *context, void (*function)(void *));
_Noreturn void held_dispatch_main(void);

struct item {
  void *queue, *context;
  void (*function)(void *);
};
static struct item *items;
static size_t first, count, capacity;
static bool holds;

EXPORTED void concourse_exploring_hold_items(void) { holds = explored_is_fixed = true; }

void explore_drop_items(void) {
  holds = false;
  first = count;
}

void held_dispatch_async_f(void *queue, void *context, void (*function)(void *)) {
  if (!holds) return explored_dispatch_async_f(queue, context, function);
  if (count == capacity) {
    capacity = capacity ? capacity * 2 : 64;
    items = realloc(items, capacity * sizeof *items);
    if (!items) abort();
  }
  items[count++] = (struct item){queue, context, function};
}

void held_dispatch_main(void) {
  while (first < count) {
    struct item item = items[first++];
    item.function(item.context);
  }
  // Either this is a run now, or the program waits for something else than an item.
  holds = false;
  explored_dispatch_main();
}
