// Objects of a program's own types, with reference counting by the library.

#include "check.h"

struct thing {
  const void *type;
  int references, external_references;
  long value;
};

static int ended, disposed;

static void end(_os_object_t object) {
  ended++;
  _os_object_release_internal(object);
}

static void dispose(_os_object_t object) {
  disposed++;
  _os_object_dealloc(object);
}

static const struct {
  void (*end)(_os_object_t), (*dispose)(_os_object_t);
} type = {end, dispose};

static _os_object_t make(void) { return _os_object_alloc(&type, sizeof(struct thing)); }

static void released_twice(void) {
  _os_object_t object = make();
  (void)_os_object_retain_internal(object);
  (void)_os_object_retain_internal(object);
  _os_object_release(object);
  _os_object_release(object);
}

static void retained_too_late(void) {
  _os_object_t object = make();
  (void)_os_object_retain_internal(object);
  _os_object_release(object);
  _os_object_retain(object);
}

int main(void) {
  dies(released_twice);
  dies(retained_too_late);

  _os_object_t object = make();
  struct thing *thing = (struct thing *)object;
  check(thing->type == (const void *)&type);
  check_equal(thing->value, 0);
  check(_os_object_retain(object) == object);
  check_equal(thing->external_references, 1);
  check(_os_object_retain_internal_n(object, 5) == object);
  check_equal(thing->references, 5);
  _os_object_release_internal_n(object, 5);
  _os_object_release(object);
  check_equal(ended, 0);
  // The last release calls the type's functions.
  (void)_os_object_retain_internal(object);
  _os_object_release(object);
  check_equal(ended, 1);
  check_equal(disposed, 0);
  // It may be retained again before it is destroyed.
  (void)_os_object_retain_with_resurrect(object);
  check_equal(thing->external_references, 0);
  _os_object_release(object);
  check_equal(ended, 2);
  _os_object_release_internal(object);
  check_equal(disposed, 1);

  object = _os_object_alloc_realized(&type, sizeof(struct thing));
  _os_object_release(object);
  check_equal(disposed, 2);
  // A type without functions.
  object = _os_object_alloc(NULL, sizeof(struct thing));
  (void)_os_object_retain(object);
  _os_object_release(object);
  _os_object_release(object);
  return finish();
}
