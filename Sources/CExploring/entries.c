// What the entries in front of functions call (entries.S).

#include "exploring.h"

void explore_enter(uint16_t operation, const void *object, const void *place);
void explore_leave(uint16_t operation, const void *object, const void *place);
void *explore_find(uint16_t operation, const void *object, const void *place, const char *name);
void *explore_find_ordering(uint16_t number, const void *object, const void *place, const char *name);

/// The second argument of the function, which the entry keeps in its frame.
#define SECOND(place) (((const void *const *)(place))[-2])

void explore_enter(uint16_t operation, const void *object, const void *place) {
  struct explored *self = explore_current();
  if (!self) return;
  self->depth++;
  if (operation == OP_MAIN) self->serves_main = true;
  if (explored_races) {
    if (operation == OP_ITEM_BEGINS) explore_order_item_begin();
    else explore_order_before(self, operation, object, SECOND(place), place);
  }
  explore_point(self, operation, object, place);
}

void explore_leave(uint16_t operation, const void *object, const void *place) {
  struct explored *self = explore_current();
  if (!self) return;
  if (explored_races) {
    if (operation == OP_ITEM_BEGINS) explore_order_item_end();
    else explore_order_after(self, operation, object, SECOND(place));
  }
  explore_point(self, operation == OP_ITEM_BEGINS ? OP_ITEM_ENDS : operation, object, place);
  if (self->depth > 0) self->depth--;
}

/// The numbers of the runtime's functions begin here.
enum { FIRST = 512, MOST = 64 };

static bool is_resumption(uint16_t operation) {
  return operation >= OP_CONTINUATION_RESUME && operation <= OP_CONTINUATION_ERROR;
}

void *explore_find(uint16_t operation, const void *object, const void *place, const char *name) {
  static void *found[MOST];
  struct explored *self = explore_current();
  if (self) explore_point(self, operation, object, place);
  if (self && explored_races && is_resumption(operation)) explore_order_resumption();
  void **function = &found[operation - FIRST];
  if (!*function) {
    *function = explore_real(name);
    if (operation == OP_TASK_SWITCH) *function = explore_hops(*function);
  }
  return *function;
}

/// The last of the numbers in entries.S.
enum { RETURNED = 7 };

void *explore_find_ordering(uint16_t number, const void *object, const void *place, const char *name) {
  (void)object, (void)place;
  static void *found[RETURNED + 1];
  if (explored_races && explore_current()) {
    if (number == RETURNED) explore_order_return();
    else explore_order_resumption();
  }
  if (!found[number]) found[number] = explore_real(name);
  return found[number];
}
