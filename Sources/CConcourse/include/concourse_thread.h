// The engine's state of a thread. Apart, since `concourse report` reads it in another process: the offsets of its fields
// are from here.

#ifndef CONCOURSE_THREAD_H
#define CONCOURSE_THREAD_H

#include <stdint.h>

struct concourse_event_ring;

/// The engine's per-thread state. Only the thread itself touches it.
struct concourse_thread {
  /// The innermost running item's `Frame`, or NULL outside items.
  void *_Nullable frame;
  /// The queue of `frame`, still valid when the frame's stack is gone; stale while `frame` is NULL.
  void *_Nullable queue;
  /// This thread's `WorkerRecord` when it is a pool worker, else NULL; also NULL while the worker delivers events.
  void *_Nullable worker;
  /// Free `WorkNode`s cached by this thread, linked through their first word.
  void *_Nullable free_nodes;
  /// Number of nodes on `free_nodes`.
  uint32_t free_count;
  /// The count at which the thread returns nodes to the depot; 0 before its exit is watched and after its exit hook has
  /// run.
  uint32_t free_limit;
  /// Kernel thread id; 0 until first needed, and again in a forked child.
  uint32_t id;
  /// The place of the first root queue of the thread's shard in the table of roots (see Pool/SHARDS.md).
  uint32_t roots;
  /// Objects whose release waits until an outer release has unwound (see Node/DeferredRelease.swift).
  void *_Nullable deferred_releases;
  /// Nesting depth of the parallel loops that this thread takes part in.
  uint32_t loop_depth;
  /// Nesting depth of the `once` bodies that this thread runs.
  uint32_t once_depth;
  /// The nice value of a lowered worker minus the process's; 0 on other threads.
  int32_t nice;
  /// State of the thread-exit hook: `CONCOURSE_EXIT_…`.
  uint8_t exit_hook;
  /// 1 if the thread has woken another since it last waited (see Park/Spin.swift).
  uint8_t has_woken;
  /// 1 while the thread drains `deferred_releases`.
  uint8_t releasing;
  /// One more than the place, in its shard, of the table in which the thread sets timers; 0 before it sets one. Stays 0
  /// with one shard.
  uint8_t timer_table;
  /// The uptime at which the thread went to sleep in a wait of the engine, in nanoseconds; 0 while it does not.
  uint64_t blocked_since;
  /// In debug builds: the ranks of the locks that the thread holds, a bit for each (see Park/LockRank.swift).
  uint64_t held_locks;
  /// The ring in which the thread records events; NULL before its first one.
  struct concourse_event_ring *_Nullable recording;
  /// In place of `worker` while the worker delivers events, else NULL.
  void *_Nullable delivering;
  /// The group of the item that the thread runs, not counted: the item keeps it alive. NULL outside grouped items.
  void *_Nullable group;
  /// For how many nanoseconds the thread last slept on a futex; 0 as well after a yield that gave its processor away (see
  /// Park/Spin.swift).
  uint32_t last_sleep;
  /// How many of its long spins were not worth it since one was, at most 8. Those that a yield ended do not count.
  uint8_t slow_spins;
  /// 1 in a forked child, on the thread that was a worker of the parent's pool.
  uint8_t was_worker;
  /// How many further waits do not spin long.
  uint16_t long_spins_barred;
};

#endif
