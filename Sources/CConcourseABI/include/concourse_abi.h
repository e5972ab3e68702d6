// The C interface's data symbols and the layout of a block. No logic lives here.

#ifndef CONCOURSE_ABI_H
#define CONCOURSE_ABI_H

#include <stdint.h>

// One object per name, identified by its address. The sizes match the toolchain's library, since the linker copies such
// objects into finished programs. Every byte holds the object's kind (`ObjectKind`), so reading the kind field of a
// reference also works for these symbols.
#define CONCOURSE_OBJECTS(object)                       \
  object(_dispatch_main_q, 0x80, 11)                    \
  object(_dispatch_data_empty, 0x50, 12)                \
  object(_dispatch_queue_attr_concurrent, 0xFC00, 13)   \
  object(_dispatch_source_type_data_add, 0x30, 14)      \
  object(_dispatch_source_type_data_or, 0x30, 14)       \
  object(_dispatch_source_type_data_replace, 0x30, 14)  \
  object(_dispatch_source_type_interval, 0x30, 14)      \
  object(_dispatch_source_type_read, 0x30, 14)          \
  object(_dispatch_source_type_write, 0x30, 14)         \
  object(_dispatch_source_type_signal, 0x30, 14)        \
  object(_dispatch_source_type_timer, 0x30, 14)         \
  object(_dispatch_source_type_proc, 0x30, 14)          \
  object(_dispatch_source_type_vnode, 0x30, 14)         \
  object(_dispatch_source_type_memorypressure, 0x30, 14) \
  object(_dispatch_data_format_type_none, 0x28, 14)     \
  object(_dispatch_data_format_type_base32, 0x28, 14)   \
  object(_dispatch_data_format_type_base32hex, 0x28, 14) \
  object(_dispatch_data_format_type_base64, 0x28, 14)   \
  object(_dispatch_data_format_type_utf8, 0x28, 14)     \
  object(_dispatch_data_format_type_utf16le, 0x28, 14)  \
  object(_dispatch_data_format_type_utf16be, 0x28, 14)  \
  object(_dispatch_data_format_type_utf_any, 0x28, 14)

#define CONCOURSE_DECLARE(name, size, kind)                              \
  extern char name[size] __attribute__((visibility("default"), aligned(16))); \
  static inline __attribute__((always_inline)) void *_Nonnull concourse##name(void) { return name; }
CONCOURSE_OBJECTS(CONCOURSE_DECLARE)
#undef CONCOURSE_DECLARE

// The fields of a queue that clang's thread sanitizer reads, by way of `dispatch_queue_offsets`: 16 bits that are 1 if the
// queue is serial, and the queue's target. Of a source it reads the target. The symbol of the main queue has the same
// fields; its target is the main queue, so that items of queues that end there are ordered with its own.
#define CONCOURSE_TARGET_OFFSET 32
#define CONCOURSE_WIDTH_OFFSET 86

/// Sets these fields of the symbol.
static inline __attribute__((always_inline)) void concourse_show_main_queue(void *_Nonnull queue) {
  void *_Nullable *target = (void **)(_dispatch_main_q + CONCOURSE_TARGET_OFFSET);
  uint16_t *width = (uint16_t *)(_dispatch_main_q + CONCOURSE_WIDTH_OFFSET);
  // ORDERING: acquiring and releasing on the target, whose reader then reads the width. All threads write the same.
  if (__atomic_load_n(target, __ATOMIC_ACQUIRE) == queue) return;
  __atomic_store_n(width, 1, __ATOMIC_RELAXED);
  __atomic_store_n(target, queue, __ATOMIC_RELEASE);
}

/// What a bridging thread wants from its next C call (see QueueBridge.swift).
struct concourse_crossing {
  /// The queue that the next creating call returns, with one reference.
  void *_Nullable adopted;
  /// 1 until the next label query stores its queue in `captured`.
  uint8_t captures;
  void *_Nullable captured;
};
extern __thread struct concourse_crossing concourse_crossing
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
static inline __attribute__((always_inline)) struct concourse_crossing *_Nonnull concourse_current_crossing(void) {
  return &concourse_crossing;
}

/// The header of every block, as compilers lay it out.
struct concourse_block {
  void *_Nullable isa;
  int32_t flags;
  int32_t reserved;
  void (*_Nonnull invoke)(void *_Nullable block);
  void *_Nonnull descriptor;
};

void *_Nullable _Block_copy(const void *_Nonnull block);
void _Block_release(const void *_Nonnull block);

/// A block that stands for one of our objects. Calling the block calls `invoke` with the object; the block's last
/// release calls `release` with it.
void *_Nullable concourse_block_create(void *_Nonnull object, void (*_Nonnull invoke)(void *_Nullable object),
                                       void (*_Nonnull release)(void *_Nonnull object));
/// The object that a block from `concourse_block_create` stands for, or NULL for any other block.
void *_Nullable concourse_block_object(const void *_Nonnull block);

#define CONCOURSE_DESTRUCTOR(name)                                              \
  extern void *_Nonnull const name __attribute__((visibility("default")));     \
  static inline __attribute__((always_inline)) void *_Nonnull concourse##name(void) { return name; }
CONCOURSE_DESTRUCTOR(_dispatch_data_destructor_free)
CONCOURSE_DESTRUCTOR(_dispatch_data_destructor_munmap)
CONCOURSE_DESTRUCTOR(_dispatch_data_destructor_none)
#undef CONCOURSE_DESTRUCTOR

#endif
