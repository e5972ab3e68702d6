// What a process can learn of its own queues and threads while it runs: the functions of `Inspection` in Swift. Only
// Concourse has them. All may be called from any thread, in items too, but not from signal handlers.
//
// Each structure begins with its size, which the caller sets: `struct concourse_pool pool = {sizeof pool};`. The library
// fills in what fits, so programs that were built for an older version go on working. Times are in nanoseconds, and
// instants those of CLOCK_MONOTONIC. Counts that are not known are -1.

#ifndef __CONCOURSE_INSPECTION__
#define __CONCOURSE_INSPECTION__

#include <stddef.h>
#include <stdint.h>

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnullability-extension"
#define CONCOURSE_NULLABLE _Nullable
#define CONCOURSE_NONNULL _Nonnull
#else
#define CONCOURSE_NULLABLE
#define CONCOURSE_NONNULL
#endif

#ifdef __cplusplus
extern "C" {
#endif

// Bytes of a label with its terminating zero; a longer one is cut off at a character.
#define CONCOURSE_LABEL_SIZE 128

// --- Snapshots ---

// The threads of the pool.
struct concourse_pool {
  size_t size;
  // The threads of each band that may run at once, and the threads of all bands before blocked ones are no longer
  // replaced at once.
  int64_t width, limit;
  // All threads: those that run an item or look for one, those that sleep in an item, and idle ones.
  int64_t threads, active, blocked, parked;
  // The active threads that look for work.
  int64_t searching;
  // The blocked threads in waits of the library, and those found asleep in other calls.
  int64_t waiting, stuck;
};

enum {
  CONCOURSE_BLOCKED_TURN = 1,
  CONCOURSE_BLOCKED_SERVICE = 2,
  CONCOURSE_BLOCKED_WORK_ITEM = 3,
  CONCOURSE_BLOCKED_ONCE = 4,
};

// A thread that has slept for more than 40 ms in a wait that only certain threads can end: for its turn on a queue, for
// the thread that serves a queue, for the end of a work item, or of a function that runs once.
struct concourse_blocked_thread {
  size_t size;
  // The kernel's id of the thread.
  uint32_t thread;
  uint32_t reason;
  // When the wait began.
  uint64_t since;
  // The queue that it waits for, and its label; 0 and empty if it waits for something else.
  uint64_t queue;
  char label[CONCOURSE_LABEL_SIZE];
};

enum {
  CONCOURSE_QUEUE_GLOBAL = 0,
  CONCOURSE_QUEUE_SERIAL = 1,
  CONCOURSE_QUEUE_CONCURRENT = 2,
  CONCOURSE_QUEUE_WORKLOOP = 3,
  CONCOURSE_QUEUE_MAIN = 4,
  CONCOURSE_QUEUE_RUN_LOOP = 5,
};

struct concourse_queue {
  size_t size;
  // The queue's address. After the queue is freed, another one may get it. The target's; 0 if it has none.
  uint64_t id, target;
  uint32_t kind;
  uint32_t reserved;
  // The items that wait to start, and those that run; -1 while there are no statistics.
  int64_t waiting, running;
  char label[CONCOURSE_LABEL_SIZE];
};

// Fills in the pool's threads at present: none in a forked child.
void concourse_inspect_pool(struct concourse_pool *CONCOURSE_NONNULL pool);

// Fills in at most `capacity` elements of an array, the threads that wait longest first. The first element's size is that
// of each. Returns how many blocked threads there are, which may be more. `threads` may be NULL if `capacity` is 0.
size_t concourse_inspect_blocked_threads(struct concourse_blocked_thread *CONCOURSE_NULLABLE threads,
                                         size_t capacity);

// As above, with the main queue, the global queues, and each queue that has had an item since the process was first
// recorded.
size_t concourse_inspect_queues(struct concourse_queue *CONCOURSE_NULLABLE queues, size_t capacity);

// --- Statistics ---

// How many durations there were, their sum, and the longest. The median and the 99th percentile are 0 if there were none,
// and off by 2 % at most. The reserved words are 0: later versions may use them, and the size stays as it is.
struct concourse_durations {
  uint64_t count, total, longest, median, percentile_99;
  uint64_t reserved[3];
};

// What happened in one interval.
struct concourse_statistics {
  size_t size;
  uint64_t start, end;
  // The number of queues: see `concourse_statistics_queue`.
  uint64_t queues;
  // The sum of the times during which threads ran items and did not wait.
  uint64_t running;
  // How often a thread of the pool went to sleep for want of work, and was woken; threads made.
  uint64_t parked, woken, threads_made;
  // Events of timers, delayed submissions and sources.
  uint64_t events;
  // Events that were not counted, because they were made faster than they were read.
  uint64_t lost;
};

// What happened on a queue in one interval.
struct concourse_queue_statistics {
  size_t size;
  uint64_t id, target;
  uint32_t kind;
  uint32_t reserved;
  // At the end of the interval.
  int64_t waiting, running;
  uint64_t submitted, started, ended;
  // The sum of the times during which its items ran within the interval.
  uint64_t busy;
  // From submission to start, and from start to end. Of calls of `dispatch_sync` that had to sleep until their turn.
  struct concourse_durations wait, run, sync_wait;
  char label[CONCOURSE_LABEL_SIZE];
};

typedef struct concourse_statistics_stream *concourse_statistics_t;

// Begins to record what happens on the queues. While there is a stream, the process has one more thread, which reads the
// records. An interval is at least `interval` nanoseconds long.
// Returns NULL in a forked child of a process with threads of the library, with errno set to ENOTSUP, and with EAGAIN if
// the system refuses a thread or memory.
concourse_statistics_t CONCOURSE_NULLABLE concourse_statistics_begin(uint64_t interval);

// Waits for the end of an interval, up to 50 ms longer, and fills in what happened. Nothing is buffered: if the interval
// has passed when this function is called, it has become longer, and has all that happened.
// Returns 0, or -1 with errno set to ECANCELED if the stream is ended meanwhile, or to EBUSY if another call waits.
int concourse_statistics_next(concourse_statistics_t CONCOURSE_NONNULL stream,
                              struct concourse_statistics *CONCOURSE_NONNULL statistics);

// Fills in what happened on a queue in the interval that `concourse_statistics_next` returned last. The queues with the
// most items started come first. Returns 0, or -1 with errno set to EINVAL if `index` is not below the number of queues.
int concourse_statistics_queue(concourse_statistics_t CONCOURSE_NONNULL stream, size_t index,
                               struct concourse_queue_statistics *CONCOURSE_NONNULL queue);

// Ends a stream. A thread that waits in `concourse_statistics_next` returns. It must have returned before
// `concourse_statistics_release`.
void concourse_statistics_end(concourse_statistics_t CONCOURSE_NONNULL stream);

// Ends the stream, if that has not been done, and frees it.
void concourse_statistics_release(concourse_statistics_t CONCOURSE_NULLABLE stream);

#ifdef __cplusplus
}
#endif

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

#endif
