// What the entries in front of functions call (entries.S).

#include "exploring.h"

void explore_enter(uint16_t operation, const void *object, const void *place);
void explore_leave(uint16_t operation, const void *object, const void *place);
void *explore_find(uint16_t operation, const void *object, const void *place, const char *name);

void explore_enter(uint16_t operation, const void *object, const void *place) {
  struct explored *self = explore_current();
  if (!self) return;
  self->depth++;
  explore_point(self, operation, object, place);
}

void explore_leave(uint16_t operation, const void *object, const void *place) {
  struct explored *self = explore_current();
  if (!self) return;
  explore_point(self, operation == OP_ITEM_BEGINS ? OP_ITEM_ENDS : operation, object, place);
  if (self->depth > 0) self->depth--;
}

/// The numbers of the runtime's functions begin here.
enum { FIRST = 512, MOST = 64 };

void *explore_find(uint16_t operation, const void *object, const void *place, const char *name) {
  static void *found[MOST];
  struct explored *self = explore_current();
  if (self) explore_point(self, operation, object, place);
  void **function = &found[operation - FIRST];
  if (!*function) {
    *function = explore_real(name);
    if (operation == OP_TASK_SWITCH) *function = explore_hops(*function);
  }
  return *function;
}
