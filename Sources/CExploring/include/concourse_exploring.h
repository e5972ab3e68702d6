// The agreement between `concourse explore` and the exploring library: a file that both map. The command creates it, fills
// in what the run must do, and names it in the variable CONCOURSE_EXPLORING of the program's environment; the library
// removes the variable, and keeps the results up to date, so that a crash leaves them.
//
// All threads of the program have numbers, in the order of their creation; the first thread is 0. One of them runs. At
// each of its points (an operation, or a wait that begins) a decision is made who runs on. By default the thread
// runs on while it can; when it cannot, the one with the lowest number of those that can. Each decision that differs is a
// switch, and a schedule is the list of its switches.

#ifndef CONCOURSE_EXPLORING_H
#define CONCOURSE_EXPLORING_H

#include <stdint.h>

/// The environment variable with the path of the file.
/// Besides, the command switches off what makes runs differ: address randomization (ADDR_NO_RANDOMIZE), Swift's hash seeds
/// (SWIFT_DETERMINISTIC_HASHING=1), and the backtraces of crashes (SWIFT_BACKTRACE=enable=no), whose handler would stop the
/// other threads.
#define CONCOURSE_EXPLORING_VARIABLE "CONCOURSE_EXPLORING"

enum {
  CONCOURSE_EXPLORING_VERSION = 3,
  CONCOURSE_EXPLORING_FRAMES = 8,
  CONCOURSE_EXPLORING_THREADS = 1024,
  /// In place of a thread: virtual time jumps to the next deadline, though a thread could run.
  CONCOURSE_EXPLORING_TIME = 0xFFFF,
};
/// "explore" and a zero.
#define CONCOURSE_EXPLORING_MAGIC 0x0065726f6c707865ull

enum concourse_exploring_strategy {
  /// No switches but those of the list to follow.
  CONCOURSE_EXPLORING_FOLLOW = 0,
  CONCOURSE_EXPLORING_RANDOM = 1,
  CONCOURSE_EXPLORING_PCT = 2,
  CONCOURSE_EXPLORING_POS = 3,
};

enum concourse_exploring_outcome {
  /// The library has not started: the program did not load it.
  CONCOURSE_EXPLORING_NOT_STARTED = 0,
  /// It runs, or has ended by itself: an exit, a signal or a trap.
  CONCOURSE_EXPLORING_RUNNING = 1,
  // With all that follow, the threads sleep until the process is killed.
  /// No thread can go on, and there is no deadline.
  CONCOURSE_EXPLORING_DEADLOCK = 2,
  /// Time passes, but nothing of the program runs any more.
  CONCOURSE_EXPLORING_HANG = 3,
  /// `step_limit` decisions were made.
  CONCOURSE_EXPLORING_STEP_LIMIT = 4,
  /// The thread `culprit` has used a second of processor time without a point. It still runs.
  CONCOURSE_EXPLORING_SPINNING = 5,
  /// The thread `culprit` has slept for a second in a call that the library does not see: `detail` has its number.
  CONCOURSE_EXPLORING_BLOCKED_UNSEEN = 6,
  /// More than CONCOURSE_EXPLORING_THREADS threads.
  CONCOURSE_EXPLORING_TOO_MANY_THREADS = 7,
  /// Nothing can run on but what the outside may send: a descriptor that leads out of the process, or a child.
  CONCOURSE_EXPLORING_WAITS_FOR_OUTSIDE = 8,
  /// The thread sanitizer has seen two accesses that nothing orders: `accesses`, of which `culprit` has made the first.
  CONCOURSE_EXPLORING_RACE = 9,
};

/// One of the two accesses of a race.
struct concourse_exploring_access {
  /// Return addresses, innermost first: that of the access, and those of the calls.
  uint64_t frames[CONCOURSE_EXPLORING_FRAMES];
  uint32_t size;
  uint16_t thread;
  uint16_t frame_count;
  uint8_t writes;
  uint8_t is_atomic;
};

/// A decision against the default: at its `point`-th decision `thread` let `next` go on.
struct concourse_exploring_switch {
  uint16_t thread;
  /// A thread, or CONCOURSE_EXPLORING_TIME.
  uint16_t next;
  uint32_t point;
};

/// What a thread did at one of its points.
struct concourse_exploring_event {
  /// Nanoseconds of virtual time since the program began.
  uint64_t time;
  /// The object of the operation: an address, or a descriptor; 0 if it has none.
  uint64_t object;
  /// The point's number among the decisions of its thread, from 1 on: that of the switch made here.
  uint32_t point;
  uint16_t thread;
  uint16_t operation;
  /// The thread that went on: `thread` itself, or another; or CONCOURSE_EXPLORING_TIME.
  uint16_t next;
  /// CONCOURSE_EXPLORING_SWITCHED | CONCOURSE_EXPLORING_BLOCKS.
  uint8_t flags;
  uint8_t frame_count;
  /// How many threads could go on.
  uint32_t choices;
  /// Return addresses, innermost first; the first is that of the operation's call.
  uint64_t frames[CONCOURSE_EXPLORING_FRAMES];
};
enum {
  /// The decision differs from the default.
  CONCOURSE_EXPLORING_SWITCHED = 1,
  /// The thread could not go on: it waits for `object`.
  CONCOURSE_EXPLORING_BLOCKS = 2,
};

/// A thread as it is now.
struct concourse_exploring_thread {
  /// The kernel's id.
  uint32_t id;
  /// CONCOURSE_EXPLORING_UNUSED and so on.
  uint8_t state;
  /// 1 if the engine made the thread.
  uint8_t is_engine;
  /// The operation that it waits in, or its last one.
  uint16_t operation;
  uint64_t object;
  /// Until when it waits, in nanoseconds of virtual time since the program began; all ones without a deadline.
  uint64_t deadline;
  /// Decisions so far.
  uint32_t points;
  uint16_t creator;
  uint16_t frame_count;
  /// Where it last was at a point.
  uint64_t frames[CONCOURSE_EXPLORING_FRAMES];
};
enum {
  CONCOURSE_EXPLORING_UNUSED = 0,
  CONCOURSE_EXPLORING_RUNNABLE = 1,
  CONCOURSE_EXPLORING_WAITING = 2,
  CONCOURSE_EXPLORING_ENDED = 3,
};

struct concourse_exploring_header {
  uint64_t magic;
  uint32_t version;
  /// sizeof this, for both sides to check.
  uint32_t header_size;

  // What the run does. The process that starts it writes this.
  uint32_t strategy;
  /// PCT: the number of ordering constraints of the bugs to find; depth - 1 changes of priority.
  uint32_t depth;
  uint64_t seed;
  /// PCT: decisions of an earlier run, among which the changes are spread; 0 if unknown.
  uint64_t expected_steps;
  /// Decisions after which the run ends; 0 for none.
  uint64_t step_limit;
  /// 1 if clocks and sleeps are real.
  uint32_t real_time;
  /// 1 if the command wants events with return addresses; they take half of the time.
  uint32_t wants_frames;
  /// 1 if the process ends, with any status, when the library ends the run: it is not inspected.
  uint32_t ends_process;
  /// A result: 1 once there may be switches.
  uint32_t began;
  /// Switches to follow, from the offset on in this file. In all strategies: they come before what the strategy says.
  uint64_t follow_offset;
  uint64_t follow_count;
  /// Where the switches made go. What exceeds the capacity is only counted.
  uint64_t made_offset;
  uint64_t made_capacity;
  /// A ring of events: the event n is at n modulo the capacity. 0 for none.
  uint64_t events_offset;
  uint64_t events_capacity;
  /// CONCOURSE_EXPLORING_THREADS of them.
  uint64_t threads_offset;

  // Results.
  /// enum concourse_exploring_outcome
  uint32_t outcome;
  /// The thread that the outcome is about.
  uint32_t culprit;
  uint64_t detail;
  /// The thread that runs.
  uint32_t running;
  uint32_t thread_count;
  /// Decisions, and those with more than one choice.
  uint64_t steps;
  uint64_t choices;
  /// Of all decisions: threads, operations, virtual time and who went on.
  uint64_t hash;
  /// Nanoseconds of virtual time since the program began.
  uint64_t virtual_time;
  uint64_t made_count;
  uint64_t event_count;
  /// Switches of the list that were followed, and those whose thread could not go on at its point.
  uint64_t followed_count;
  uint64_t skipped_count;
  /// Bits of CONCOURSE_EXPLORING_LEAK_…: what the program used that other runs may see differently.
  uint64_t leaks;
  /// Of a race: the later access, and the one before it.
  struct concourse_exploring_access accesses[2];
};

enum {
  CONCOURSE_EXPLORING_LEAK_PROCESS_ID = 1,
  CONCOURSE_EXPLORING_LEAK_DIRECTORY_ORDER = 2,
  CONCOURSE_EXPLORING_LEAK_OUTSIDE_SOCKET = 4,
  CONCOURSE_EXPLORING_LEAK_CHILD_PROCESS = 8,
  CONCOURSE_EXPLORING_LEAK_REAL_WAIT = 16,
};

// In tests the library is loaded without a file. A process that has one thread, which forks a child for each run, begins in
// the child with these, which it finds with dlsym.

/// Begins a run that `header`, in shared memory, describes. There are no switches yet. Returns 0 for another version.
typedef int (*_Nonnull concourse_exploring_begin)(struct concourse_exploring_header *_Nonnull header);
#define CONCOURSE_EXPLORING_BEGIN "concourse_exploring_begin_run"
/// Before a run: Swift's jobs run on the thread of `main` only, and no engine is used. The beginning of a run drops those
/// that wait.
typedef void (*_Nonnull concourse_exploring_hold)(void);
#define CONCOURSE_EXPLORING_HOLD "concourse_exploring_hold_items"
/// From now on there are switches. Decisions are counted from here.
typedef void (*_Nonnull concourse_exploring_explore)(void);
#define CONCOURSE_EXPLORING_EXPLORE "concourse_exploring_explore_run"
/// Waits until no other thread can go on before time passes. Returns 0 outside of a run.
typedef int (*_Nonnull concourse_exploring_idle)(void);
#define CONCOURSE_EXPLORING_IDLE "concourse_exploring_await_idleness"

/// The offsets of a file with these capacities; returns its size. `header` is otherwise left as it is.
static inline uint64_t concourse_exploring_lay_out(struct concourse_exploring_header *_Nonnull header, uint64_t follow,
                                                   uint64_t made, uint64_t events) {
  uint64_t end = (sizeof *header + 63) & ~63ull;
  header->magic = CONCOURSE_EXPLORING_MAGIC;
  header->version = CONCOURSE_EXPLORING_VERSION;
  header->header_size = sizeof *header;
  header->threads_offset = end;
  end += CONCOURSE_EXPLORING_THREADS * sizeof(struct concourse_exploring_thread);
  header->follow_offset = end;
  header->follow_count = follow;
  end += follow * sizeof(struct concourse_exploring_switch);
  header->made_offset = end;
  header->made_capacity = made;
  end += made * sizeof(struct concourse_exploring_switch);
  header->events_offset = end;
  header->events_capacity = events;
  end += events * sizeof(struct concourse_exploring_event);
  return (end + 4095) & ~4095ull;
}

/// The name of an operation; NULL for an unknown number.
static inline const char *_Nullable concourse_exploring_operation_name(uint32_t operation) {
  switch (operation) {
#define OPERATION(number, name) \
  case number: return #name;
#define FUNCTION OPERATION
#define RUNTIME OPERATION
#include "concourse_exploring_operations.h"
#undef OPERATION
#undef FUNCTION
#undef RUNTIME
  default: return 0;
  }
}

#endif
