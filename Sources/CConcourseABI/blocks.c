// Blocks built by hand, so that this target builds without compiler support for blocks.

#include <stdatomic.h>
#include <stdlib.h>

#include "concourse_abi.h"

#define EXPORTED __attribute__((visibility("default")))

extern void *_NSConcreteGlobalBlock[32];
extern void *_NSConcreteMallocBlock[32];
extern void *_NSConcreteStackBlock[32];
extern void *_Block_copy(const void *block);
extern void _Block_release(const void *block);

enum {
  COUNT = 0xFFFF,
  NEEDS_FREE = 1 << 24,
  HAS_HELPERS = 1 << 25,
  IS_GLOBAL = 1 << 28,
};

struct descriptor {
  unsigned long reserved;
  unsigned long size;
  void (*copy)(void *to, const void *from);
  void (*dispose)(const void *block);
};

static void do_nothing(void *block) { (void)block; }
static const struct descriptor plain_descriptor = {0, sizeof(struct concourse_block), NULL, NULL};

// One reference in a block's flags: 2 in the toolchain's blocks runtime, 1 in Debian's, which has no bit for the end.
static int32_t one_reference(void) {
  static _Atomic int32_t known;
  // ORDERING: relaxed, both; a number for itself, and each thread finds the same.
  int32_t reference = atomic_load_explicit(&known, memory_order_relaxed);
  if (reference != 0) return reference;
  struct concourse_block block = {_NSConcreteStackBlock, 0, 0, do_nothing, (void *)&plain_descriptor};
  struct concourse_block *copy = _Block_copy(&block);
  if (!copy) return 2;
  reference = copy->flags & COUNT;
  _Block_release(copy);
  atomic_store_explicit(&known, reference, memory_order_relaxed);
  return reference;
}

// MARK: Blocks that stand for objects

struct object_block {
  struct concourse_block head;
  void *object;
  void (*invoke)(void *object);
  void (*release)(void *object);
};

static void invoke_object(void *block) {
  struct object_block *self = block;
  self->invoke(self->object);
}

// The block is on the heap from the start, so a copy only increments its count.
static void copy_object(void *to, const void *from) {
  (void)to;
  (void)from;
}

static void dispose_object(const void *block) {
  const struct object_block *self = block;
  self->release(self->object);
}

static const struct descriptor object_descriptor = {0, sizeof(struct object_block), copy_object, dispose_object};

extern void (*const _dispatch_block_special_invoke)(void *) EXPORTED;
void (*const _dispatch_block_special_invoke)(void *) = invoke_object;

void *concourse_block_create(void *object, void (*invoke)(void *), void (*release)(void *)) {
  struct object_block *block = malloc(sizeof *block);
  if (!block) return NULL;
  block->head.isa = _NSConcreteMallocBlock;
  block->head.flags = NEEDS_FREE | HAS_HELPERS | one_reference();
  block->head.reserved = 0;
  block->head.invoke = invoke_object;
  block->head.descriptor = (void *)&object_descriptor;
  block->object = object;
  block->invoke = invoke;
  block->release = release;
  return block;
}

void *concourse_block_object(const void *block) {
  const struct object_block *candidate = block;
  return candidate->head.invoke == invoke_object ? candidate->object : NULL;
}

// MARK: Destructors of data

// Only their addresses matter; calling one does nothing.
#define DESTRUCTOR(name)                                                                          \
  static struct concourse_block name##_block = {_NSConcreteGlobalBlock, IS_GLOBAL, 0, do_nothing, \
                                                (void *)&plain_descriptor};                       \
  void *const name = &name##_block;
DESTRUCTOR(_dispatch_data_destructor_free)
DESTRUCTOR(_dispatch_data_destructor_munmap)
DESTRUCTOR(_dispatch_data_destructor_none)
