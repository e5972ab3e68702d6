// What the engine records of its items, waits and threads: the words that switch it on, the layout of the memory that
// other processes read, and the static probes.

#ifndef CONCOURSE_RECORDING_H
#define CONCOURSE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "concourse_hooks.h"

/// The only word that the engine reads while events are not wanted: 0 then.
union concourse_recording_word {
  uint64_t all;
  struct {
    /// Tracers that have attached to a static probe; the kernel counts them.
    uint16_t tracers;
    /// Streams of statistics in the process itself.
    uint16_t streams;
    /// 1 while a tool or the flight recorder wants events.
    uint32_t recording;
  } wanted;
  /// A cache line of its own: each item reads it.
  char line[64];
};
extern union concourse_recording_word concourse_recording_word __attribute__((visibility("hidden")));

enum {
  /// Incremented when the layout of what follows changes.
  CONCOURSE_RECORDING_LAYOUT = 2,
  CONCOURSE_RECORDING_HEADER = 4096,
  /// Where the bits of queues without a name begin, and how many there are.
  CONCOURSE_RECORDING_UNNAMED = 2048,
  CONCOURSE_RECORDING_UNNAMED_BITS = 2048 * 8,
};

/// Where another process finds the recording. A note of the library or program leads to it (recording.c).
struct concourse_recording {
  uint32_t layout;
  uint32_t size;
  /// The word that switches recording on.
  union concourse_recording_word *_Nonnull word;
  /// The uptime in nanoseconds until which events are wanted: a tool that is killed leaves no recording behind.
  uint64_t until;
  /// The recording's memory, which begins with `concourse_recording_header`; NULL before the first event.
  struct concourse_recording_header *_Nullable memory;
  uint64_t memory_size;
  /// Events while there was no memory: a thread was making it, or the system refused it.
  uint64_t missed;
};
extern struct concourse_recording concourse_recording_record __attribute__((visibility("hidden")));

/// The first bytes of the recording. All offsets count from here.
struct concourse_recording_header {
  char magic[8];
  uint32_t layout, process;
  /// Records in a ring, a power of two.
  uint32_t ring_capacity;
  uint32_t ring_limit, name_limit;
  uint32_t module_bytes;
  uint64_t rings, records, names, modules;
  /// A reading of both clocks when the recording began. `ticks_are_nanoseconds`: the records have uptimes.
  uint64_t first_ticks, first_uptime;
  uint64_t first_wall;
  uint32_t ticks_are_nanoseconds;
  /// Rings, names and bytes of modules in use.
  uint32_t ring_count, name_count, module_count;
  /// Events without a ring.
  uint64_t lost;
  /// Names that had no room.
  uint64_t lost_names;
};

/// One thread's ring. Only its owner writes it.
struct concourse_event_ring {
  /// Records written so far.
  uint64_t head;
  /// The kernel id of the thread; 0 if no thread has had the ring, all ones if its thread has ended.
  uint32_t thread;
  /// The latest owner.
  uint32_t former;
  /// The latest reading of both clocks.
  uint64_t ticks, uptime;
  /// The address of the ring's records, in the recorded process.
  struct concourse_event_record *_Nullable records;
  char name[16];
  /// The task of Swift Concurrency whose name the owner has recorded last.
  uint64_t task;
};

struct concourse_event_record {
  uint64_t ticks;
  /// The event in the highest byte; below it the node of the item, or another number.
  uint64_t event_and_node;
  uint64_t object;
  /// Of an item its code, or what `concourse_job_code` returns.
  uint64_t function;
};

/// A queue's name from `ticks` on.
struct concourse_queue_name {
  uint64_t queue, ticks, target;
  uint8_t kind;
  /// 1 once the entry is complete.
  uint8_t complete;
  uint16_t length;
  /// Of a queue without a label: how many return addresses `text` has, of the calls that made the queue, innermost first.
  uint32_t frames;
  char text[96];
};

/// Takes a ring that no thread has had.
static inline void concourse_event_ring_take(struct concourse_event_ring *_Nonnull ring, uint32_t thread) {
  // ORDERING: relaxed; the ring holds nothing that the number could publish.
  __atomic_store_n(&ring->thread, thread, __ATOMIC_RELAXED);
}

/// Takes the ring of a thread that has ended.
static inline bool concourse_event_ring_claim(struct concourse_event_ring *_Nonnull ring, uint32_t thread) {
  uint32_t ended = UINT32_MAX;
  // ORDERING: relaxed; only a look, which writes nothing.
  if (__atomic_load_n(&ring->thread, __ATOMIC_RELAXED) != ended) return false;
  // ORDERING: acquiring; pairs with the release below: the new owner follows what the former one wrote.
  return __atomic_compare_exchange_n(&ring->thread, &ended, thread, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
static inline void concourse_event_ring_release(struct concourse_event_ring *_Nonnull ring) {
  // ORDERING: releasing; pairs with the claim above.
  __atomic_store_n(&ring->thread, UINT32_MAX, __ATOMIC_RELEASE);
}

/// Appends a record in place of the oldest. `mask` is the capacity minus 1.
static inline __attribute__((always_inline)) void concourse_event_ring_append(struct concourse_event_ring *_Nonnull ring,
                                                                        uint64_t mask, uint64_t ticks,
                                                                        uint64_t event_and_node, uint64_t object,
                                                                        uint64_t function) {
  uint64_t head = ring->head;
  struct concourse_event_record *record = &ring->records[head & mask];
  // ORDERING: releasing fence, between the store of `head` for the record before and the stores below: a reader that
  // sees a part of this record then sees that the oldest record is being replaced.
  __atomic_thread_fence(__ATOMIC_RELEASE);
  // ORDERING: relaxed, all; `head` publishes them.
  __atomic_store_n(&record->ticks, ticks, __ATOMIC_RELAXED);
  __atomic_store_n(&record->event_and_node, event_and_node, __ATOMIC_RELAXED);
  __atomic_store_n(&record->object, object, __ATOMIC_RELAXED);
  __atomic_store_n(&record->function, function, __ATOMIC_RELAXED);
  // ORDERING: releasing; publishes the record to readers.
  __atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
}

// The words below may be read while they change: a reader checks what it read, or can do with an old value.

/// Where the records of a new ring are.
static inline void concourse_event_ring_set_records(struct concourse_event_ring *_Nonnull ring,
                                                    struct concourse_event_record *_Nonnull records) {
  // ORDERING: relaxed; only the owner follows it.
  __atomic_store_n(&ring->records, records, __ATOMIC_RELAXED);
}
/// Notes the owner. Returns the one before.
static inline uint32_t concourse_event_ring_set_owner(struct concourse_event_ring *_Nonnull ring, uint32_t thread,
                                                      const char name[_Nonnull 16]) {
  uint32_t former = ring->former;
  uint64_t words[2];
  __builtin_memcpy(words, name, sizeof words);
  // ORDERING: relaxed, all; published with the owner's first record.
  __atomic_store_n(&ring->former, thread, __ATOMIC_RELAXED);
  __atomic_store_n((uint64_t *)ring->name, words[0], __ATOMIC_RELAXED);
  __atomic_store_n((uint64_t *)ring->name + 1, words[1], __ATOMIC_RELAXED);
  return former;
}
/// Notes a reading of both clocks.
static inline void concourse_event_ring_set_clocks(struct concourse_event_ring *_Nonnull ring, uint64_t ticks,
                                                   uint64_t uptime) {
  // ORDERING: relaxed, both; a reader that finds them changed keeps the ones before.
  __atomic_store_n(&ring->ticks, ticks, __ATOMIC_RELAXED);
  __atomic_store_n(&ring->uptime, uptime, __ATOMIC_RELAXED);
}
/// Notes the task whose name the owner records.
static inline void concourse_event_ring_set_task(struct concourse_event_ring *_Nonnull ring, uint64_t task) {
  // ORDERING: relaxed; only the owner uses it.
  __atomic_store_n(&ring->task, task, __ATOMIC_RELAXED);
}
/// Publishes the list of modules.
static inline void concourse_set_module_count(struct concourse_recording_header *_Nonnull header, uint32_t bytes) {
  // ORDERING: releasing; publishes the list to a reader in another process.
  __atomic_store_n(&header->module_count, bytes, __ATOMIC_RELEASE);
}

/// Copies words of the recording while other threads write them.
static inline void concourse_copy_recording(uint64_t *_Nonnull into, const uint64_t *_Nonnull from, size_t words) {
  // ORDERING: relaxed; the fence below orders them.
  for (size_t i = 0; i < words; i++) into[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
  // ORDERING: acquiring fence; pairs with the releasing stores and the fence of the writers: what is read after a head
  // or a completed name is at least as new, and a head that is read after records tells which of them were replaced.
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/// Takes the next of `limit` places.
/// Returns its index, or `limit` if there is none; `count` then stays.
static inline uint32_t concourse_take_place(uint32_t *_Nonnull count, uint32_t limit) {
  // ORDERING: relaxed; each place has its own word that publishes it.
  uint32_t seen = __atomic_load_n(count, __ATOMIC_RELAXED);
  while (seen < limit &&
         !__atomic_compare_exchange_n(count, &seen, seen + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return seen < limit ? seen : limit;
}

static inline void concourse_publish_recording(struct concourse_recording_header *_Nonnull header,
                                               uint64_t size) {
  concourse_recording_record.memory_size = size;
  uint64_t magic;
  __builtin_memcpy(&magic, "CONCREC", 8);
  // ORDERING: releasing; a reader of the file that sees the magic number sees the whole header.
  __atomic_store_n((uint64_t *)header->magic, magic, __ATOMIC_RELEASE);
  // ORDERING: releasing; publishes the header to a reader in another process.
  __atomic_store_n(&concourse_recording_record.memory, header, __ATOMIC_RELEASE);
}

/// For a forked child, whose memory may be its parent's file.
static inline void concourse_forget_recording(void) {
  // ORDERING: relaxed; the child has one thread.
  __atomic_store_n(&concourse_recording_record.memory, NULL, __ATOMIC_RELAXED);
}

/// The recording's memory, once it is made.
static inline struct concourse_recording_header *_Nullable concourse_recording_memory(void) {
  // ORDERING: acquiring; pairs with the store above.
  return __atomic_load_n(&concourse_recording_record.memory, __ATOMIC_ACQUIRE);
}

static inline void concourse_count_missed(void) {
  // ORDERING: relaxed; a count.
  __atomic_fetch_add(&concourse_recording_record.missed, 1, __ATOMIC_RELAXED);
}

static inline uint64_t concourse_recording_missed(void) {
  // ORDERING: relaxed; a count.
  return __atomic_load_n(&concourse_recording_record.missed, __ATOMIC_RELAXED);
}

static inline void concourse_count_lost(struct concourse_recording_header *_Nonnull header) {
  // ORDERING: relaxed; a count.
  __atomic_fetch_add(&header->lost, 1, __ATOMIC_RELAXED);
}

/// Notes that the name of a queue had no room: an older name of that address is not its name.
static inline void concourse_count_lost_name(struct concourse_recording_header *_Nonnull header, uint64_t queue) {
  // ORDERING: relaxed; a count.
  __atomic_fetch_add(&header->lost_names, 1, __ATOMIC_RELAXED);
  uint64_t bit = queue / 16 % CONCOURSE_RECORDING_UNNAMED_BITS;
  uint8_t *byte = (uint8_t *)header + CONCOURSE_RECORDING_UNNAMED + bit / 8;
  // ORDERING: relaxed; the queue's events are published after it.
  __atomic_fetch_or(byte, (uint8_t)(1 << bit % 8), __ATOMIC_RELAXED);
}

/// Writes an entry of the list of names, and publishes it.
static inline void concourse_write_name(struct concourse_queue_name *_Nonnull entry,
                                        struct concourse_queue_name *_Nonnull name) {
  enum { WORDS = sizeof *name / sizeof(uint64_t), COMPLETE = offsetof(struct concourse_queue_name, complete) / sizeof(uint64_t) };
  name->complete = 1;
  uint64_t words[WORDS];
  __builtin_memcpy(words, name, sizeof words);
  for (size_t i = 0; i < WORDS; i++) {
    // ORDERING: relaxed; published below.
    if (i != COMPLETE) __atomic_store_n((uint64_t *)entry + i, words[i], __ATOMIC_RELAXED);
  }
  // ORDERING: releasing; publishes the entry.
  __atomic_store_n((uint64_t *)entry + COMPLETE, words[COMPLETE], __ATOMIC_RELEASE);
}

/// Writes the process's modules as lines "ADDRESS PATH", at most `size` bytes. Returns the bytes of the whole list.
size_t concourse_modules(char *_Nonnull into, size_t size);
/// A setting from the environment; NULL also in a program with more rights than its user.
const char *_Nullable concourse_recorder_setting(const char *_Nonnull name);
/// Which file it is, whatever its name.
struct concourse_file_identity {
  uint64_t device, node;
};
bool concourse_identify_file(int file, struct concourse_file_identity *_Nonnull identity);
/// Gives a part of a file's mapping its blocks, without a descriptor: the program may have closed any.
/// Returns 0, or an errno value if the file has no room.
int concourse_reserve(const char *_Nonnull path, const struct concourse_file_identity *_Nonnull identity,
                      void *_Nonnull mapping, size_t offset, size_t size);
/// The same where the kernel cannot do it through the mapping. Returns ENOENT if the path leads to another file.
int concourse_reserve_file(const char *_Nonnull path, const struct concourse_file_identity *_Nonnull identity,
                           size_t offset, size_t size);
/// The largest file that the process may write.
uint64_t concourse_file_limit(void);
/// The number of modules loaded so far.
uint64_t concourse_modules_loaded(void);
/// Whether the processor's time-stamp counter runs at a constant rate, alike on all processors.
bool concourse_has_steady_ticks(void);
/// Return addresses of the calling function and those that called it, innermost first. Returns how many.
size_t concourse_return_addresses(uint64_t *_Nonnull into, size_t capacity);
/// The calling thread's name, at most 15 bytes and a zero.
void concourse_get_thread_name(char *_Nonnull name);

// ORDERING: relaxed, all: the words publish nothing; an event that begins while they change may be missed.
static inline __attribute__((always_inline)) bool concourse_is_recording_or_traced(void) {
  return __atomic_load_n(&concourse_recording_word.all, __ATOMIC_RELAXED) != 0;
}

static inline __attribute__((always_inline)) bool concourse_is_recording(void) {
  return __atomic_load_n(&concourse_recording_word.all, __ATOMIC_RELAXED) >> 16 != 0;
}
/// Counts another stream. Returns false if there are as many as can be counted.
static inline bool concourse_begin_stream(void) {
  uint16_t *streams = &concourse_recording_word.wanted.streams;
  uint16_t seen = __atomic_load_n(streams, __ATOMIC_RELAXED);
  while (seen < UINT16_MAX) {
    if (__atomic_compare_exchange_n(streams, &seen, seen + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return true;
  }
  return false;
}
static inline void concourse_end_stream(void) {
  __atomic_fetch_sub(&concourse_recording_word.wanted.streams, 1, __ATOMIC_RELAXED);
}
/// For a forked child.
static inline void concourse_forget_streams(void) {
  __atomic_store_n(&concourse_recording_word.wanted.streams, 0, __ATOMIC_RELAXED);
}
static inline void concourse_set_recording(bool recording) {
  __atomic_store_n(&concourse_recording_word.wanted.recording, recording, __ATOMIC_RELAXED);
}
static inline uint64_t concourse_recording_until(void) {
  return __atomic_load_n(&concourse_recording_record.until, __ATOMIC_RELAXED);
}
static inline void concourse_set_recording_until(uint64_t uptime) {
  __atomic_store_n(&concourse_recording_record.until, uptime, __ATOMIC_RELAXED);
}
/// Ends the recording of a tool that has not extended its time.
static inline void concourse_end_expired_recording(uint64_t uptime) {
  // Without a tool, the cache line that each item reads is only read.
  bool recording = __atomic_load_n(&concourse_recording_word.wanted.recording, __ATOMIC_RELAXED);
  if (!recording || uptime <= concourse_recording_until()) return;
  concourse_set_recording(false);
  // ORDERING: sequentially consistent; a tool writes the time, then the word. Either the new time is read here, or the
  // tool's store to the word comes after the one above.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (uptime <= concourse_recording_until()) concourse_set_recording(true);
}

/// The processor's counter, which takes half the time of the kernel's clock to read; 0 where there is none.
static inline __attribute__((always_inline)) uint64_t concourse_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

/// The function to show for a block: its own, or that of the Swift closure that it has captured. Swift makes such a block
/// where a closure is passed to a C function; all of them have one function of the compiler's, which calls the closure.
uint64_t concourse_block_function(const void *_Nonnull block);
/// The function to show for an item: that of the block, if `function` calls one.
static inline uint64_t concourse_item_function(uint64_t function, const void *_Nullable context) {
  if (function == 0 || function != (uint64_t)concourse_call_block || context == NULL) return function;
  return concourse_block_function(context);
}

// MARK: Jobs of Swift Concurrency

/// What stands for a job in place of its function, which is the same for all jobs: the highest bit, the priority from
/// bit 48 on, and below it the number of the task, 0 for a job of an actor. `function` if the item is not a job, or the
/// program's Swift does not tell.
uint64_t concourse_job_code(uint64_t function, const void *_Nullable context);
/// The name of the task that the calling thread runs, and its number; NULL if it runs none, or one without a name.
const char *_Nullable concourse_current_task(uint64_t *_Nonnull number);

// MARK: Static probes
//
// A probe is one no-op instruction and a note (.note.stapsdt) that tells its address and where its arguments are, in the
// format that perf, bpftrace, SystemTap and GDB read. The probes lie behind the branch on the word above, whose lowest
// 16 bits are the semaphore of all of them: a tracer that attaches opens the branch.

#define CONCOURSE_PROBE(name, arguments, ...)                                        \
  __asm__ __volatile__("990: nop\n"                                                  \
                       ".pushsection .note.stapsdt,\"\",\"note\"\n"                  \
                       ".balign 4\n"                                                 \
                       ".4byte 992f-991f, 994f-993f, 3\n"                            \
                       "991: .asciz \"stapsdt\"\n"                                   \
                       "992: .balign 4\n"                                            \
                       "993: .8byte 990b, 0, concourse_recording_word\n"             \
                       ".asciz \"concourse\"\n"                                      \
                       ".asciz \"" name "\"\n"                                       \
                       ".asciz \"" arguments "\"\n"                                  \
                       "994: .balign 4\n"                                            \
                       ".popsection\n"                                               \
                       :                                                             \
                       : __VA_ARGS__)

#define CONCOURSE_PROBE_OF_3(symbol, name)                                                                    \
  static inline __attribute__((always_inline)) void symbol(uint64_t first, uint64_t second, uint64_t third) { \
    CONCOURSE_PROBE(name, "8@%0 8@%1 8@%2", "nr"(first), "nr"(second), "nr"(third));                          \
  }

/// Queue, node, function.
CONCOURSE_PROBE_OF_3(concourse_probe_submitted, "item_submitted")
CONCOURSE_PROBE_OF_3(concourse_probe_started, "item_started")
CONCOURSE_PROBE_OF_3(concourse_probe_ended, "item_ended")
/// Object, kind of wait, 0.
CONCOURSE_PROBE_OF_3(concourse_probe_wait_begun, "wait_begun")
CONCOURSE_PROBE_OF_3(concourse_probe_wait_ended, "wait_ended")
/// The level that the worker serves, 0, 0.
CONCOURSE_PROBE_OF_3(concourse_probe_thread_made, "thread_made")
CONCOURSE_PROBE_OF_3(concourse_probe_thread_parked, "thread_parked")
CONCOURSE_PROBE_OF_3(concourse_probe_thread_woken, "thread_woken")

#endif
