// What inner folders and modules call of outer ones. All of it is here; Scripts/layers checks that there is no other way
// up. Each function is weak where a program may lack the module that defines it.
#ifndef CONCOURSE_HOOKS_H
#define CONCOURSE_HOOKS_H
#include <stdbool.h>
#include <stdint.h>

// MARK: Entries of the pool

/// How a worker runs an entry. `client` is what the entry's root has for its client; NULL for an entry that the worker
/// kept.
typedef void (*concourse_entry_runner)(void *_Nonnull entry, void *_Nullable client);

/// The runners by `EntryKind`.
extern const concourse_entry_runner _Nullable concourse_entry_runners[] __attribute__((visibility("hidden")));

/// Runs an entry that a worker has taken.
static inline __attribute__((always_inline)) void concourse_run_entry(
    uint8_t kind, void *_Nonnull entry, void *_Nullable client) {
  concourse_entry_runners[kind](entry, client);
}

/// Defined by Pool/Boost.swift: the oldest boosted entry of a lowered root.
void concourse_run_boosted(void *_Nonnull entry, void *_Nullable client) __attribute__((weak));
/// Defined by Queue/Invocation.swift: an item.
void concourse_run_item(void *_Nonnull entry, void *_Nullable client) __attribute__((weak));
/// Defined by Queue/DispatchQueue+Drain.swift: a queue that has become runnable.
void concourse_run_queue(void *_Nonnull entry, void *_Nullable client) __attribute__((weak));
/// Defined by tests of the pool that have no queues.
void concourse_run_test_entry(void *_Nonnull entry, void *_Nullable client) __attribute__((weak));

/// Defined by Queue/Hierarchy/Overcommit.swift: whether an item or a queue was promised a thread of its own.
bool concourse_was_promised_thread(void *_Nonnull entry) __attribute__((weak));

// MARK: The process

/// Defined by Queue/Watch/ThreadExit.swift: a thread that has used the engine exits.
void concourse_thread_exits(void) __attribute__((weak));

/// Defined by Queue/ProcessQueues+Fork.swift: makes what queues make on first use, while there is one thread.
void concourse_settle_queues(void) __attribute__((weak));

/// Defined by Inspection/ExportedLayout.swift: exports the types that `concourse report` must recognise.
void concourse_export_layout(void) __attribute__((weak));

// MARK: The exploring library

/// Defined by Queue/Watch/HeldQueues.swift: the queue of a C reference.
const void *_Nonnull concourse_find_queue(const void *_Nonnull reference) __attribute__((weak));
/// Defined by Queue/Watch/HeldQueues.swift: a queue and those above it. The lowest bit: the item runs alone there.
int32_t concourse_list_hierarchy(
    const void *_Nonnull queue, bool is_alone, uintptr_t *_Nonnull queues, int32_t most) __attribute__((weak));
/// Defined by Queue/Watch/HeldQueues.swift: the queue of the running item, whether it runs alone there, its group.
const void *_Nullable concourse_find_running(bool *_Nonnull is_alone, const void *_Nullable *_Nonnull group)
    __attribute__((weak));

// MARK: Other modules

/// Defined by ConcourseEvents: makes what that module makes on first use, and stores its `EventDriver`. NULL in a
/// program without that module.
extern void concourse_make_event_driver(void *_Nonnull driver) __attribute__((weak));

/// Calls `concourse_make_event_driver` if the program has it.
static inline void concourse_find_event_driver(void *_Nonnull driver) {
  if (concourse_make_event_driver) concourse_make_event_driver(driver);
}

/// Defined by ConcourseABI: calls a block and releases it. NULL in a program without that module.
extern void concourse_call_block(void *_Nullable block) __attribute__((weak));

/// Defined by the module Concourse: the functions of the items that run jobs of Swift Concurrency. NULL in a program
/// without that module.
extern void concourse_run_preferred_job(void *_Nullable job) __attribute__((weak));
extern void concourse_run_isolated_job(void *_Nullable job) __attribute__((weak));

#endif
