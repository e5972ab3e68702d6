#ifdef LEDGER
#define _GNU_SOURCE
#include "include/CModelContext.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

static model_reference_observer observer;
static __thread bool is_observing;

void model_observe_references(model_reference_observer new_observer) { observer = new_observer; }

static void note(const void *object, size_t size) {
  // References with the highest bit set are immortal: nothing is counted.
  if (observer == NULL || is_observing || (intptr_t)object <= 0 || model_current() == NULL) return;
  is_observing = true;
  observer(object, *(const void *const *)object, size);
  is_observing = false;
}

static void *next(const char *name) {
  void *function = dlsym(RTLD_NEXT, name);
  if (function == NULL) abort();
  return function;
}

// The program's own calls come here instead of to the Swift runtime's functions of these names, which do the work.

// What the engine allocates begins on a line, so that a number does not depend on what has been allocated before. (The
// runtime frees memory of any alignment alike.)
static size_t aligned(size_t alignment_mask) {
  bool is_default = alignment_mask == SIZE_MAX || alignment_mask < 63;
  return model_current() != NULL && is_default ? 63 : alignment_mask;
}

void *swift_slowAlloc(size_t size, size_t alignment_mask) {
  static void *(*original)(size_t, size_t);
  if (original == NULL) original = next("swift_slowAlloc");
  return original(size, aligned(alignment_mask));
}

void *swift_allocObject(const void *metadata, size_t size, size_t alignment_mask) {
  static void *(*original)(const void *, size_t, size_t);
  if (original == NULL) original = next("swift_allocObject");
  void *object = original(metadata, size, aligned(alignment_mask));
  note(object, size);
  return object;
}

void *swift_retain(void *object) {
  static void *(*original)(void *);
  if (original == NULL) original = next("swift_retain");
  note(object, 0);
  return original(object);
}

void *swift_retain_n(void *object, uint32_t count) {
  static void *(*original)(void *, uint32_t);
  if (original == NULL) original = next("swift_retain_n");
  note(object, 0);
  return original(object, count);
}

void swift_release(void *object) {
  static void (*original)(void *);
  if (original == NULL) original = next("swift_release");
  note(object, 0);
  original(object);
}

void swift_release_n(void *object, uint32_t count) {
  static void (*original)(void *, uint32_t);
  if (original == NULL) original = next("swift_release_n");
  note(object, 0);
  original(object, count);
}
#endif
