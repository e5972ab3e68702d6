#ifndef CBENCH_H
#define CBENCH_H

// What all benchmark programs share, whatever their language: the clock, the measuring loop, the work of the echo and
// file rows, and system calls that Swift cannot express.

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

// MARK: Measuring

// The monotonic clock in nanoseconds.
static inline long bench_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

// The measuring loop: one warm-up pass, which starts the runtime's threads and fills the allocator's caches, then three
// timed passes, of which the quickest counts. A pass times its own core, so that it can prepare and verify outside of
// the timed part.
//
//   struct bench_passes passes = {0};
//   while (bench_next_pass(&passes)) {
//     long start = bench_now();
//     ...
//     bench_record(&passes, bench_now() - start);
//   }
struct bench_passes {
  // Passes after the warm-up; 0 stands for three.
  int timed;
  int begun;
  // Nanoseconds of the quickest timed pass.
  long quickest;
};

static inline bool bench_next_pass(struct bench_passes *passes) {
  return passes->begun++ <= (passes->timed ? passes->timed : 3);
}

static inline void bench_record(struct bench_passes *passes, long nanoseconds) {
  if (passes->begun == 2 || nanoseconds < passes->quickest) passes->quickest = nanoseconds;
}

// The loop for throughput: passes of so many units until a pass takes an eighth of the time, then as many passes as the
// time has room for, of which the best counts.
//
//   struct bench_point point = {.milliseconds = 300};
//   while (bench_next_pass_of_point(&point)) {
//     ... `point.units` units of work, which are some number of operations
//     bench_record_point(&point, operations, nanoseconds);
//   }
struct bench_point {
  // The time of all timed passes together.
  long milliseconds;
  // Units of the next pass.
  long units;
  // When the timed passes end; 0 until the number of units is found.
  long end;
  // Operations in a second, and operations, of the best timed pass.
  double best;
  long operations;
};

static inline bool bench_next_pass_of_point(struct bench_point *point) {
  if (point->units == 0) point->units = 1;
  return point->end == 0 || bench_now() < point->end;
}

static inline void bench_record_point(struct bench_point *point, long operations, long nanoseconds) {
  long eighth = point->milliseconds * 125000;
  if (point->end == 0 && nanoseconds < eighth && point->units < 1L << 30) {
    point->units *= nanoseconds < eighth / 16 ? 8 : 2;
  } else if (point->end == 0) {
    point->end = bench_now() + point->milliseconds * 1000000;
  } else if ((double)operations * 1e9 > point->best * (double)nanoseconds) {
    point->best = (double)operations * 1e9 / (double)nanoseconds;
    point->operations = operations;
  }
}

// Costs nothing and does nothing, but the compiler must assume that it uses `value` and touches memory: a loop around
// it cannot be removed, and a result passed to it must be computed. It is the "empty body" of every program.
static inline void bench_opaque(long value) { __asm__ volatile("" : : "r"(value) : "memory"); }

// Runs `body` on two threads of its own, which start together, each pinned to a core: unpinned, the kernel may run both
// on one core, and nothing contends. Returns the nanoseconds from the first start to the last end.
long bench_time_two_threads(void (*body)(void *context, int thread), void *context);

// The same with any number of threads; pinned or not.
long bench_time_threads(int threads, bool pinned, void (*body)(void *context, int thread), void *context);

// How many cores the calling thread may use.
int bench_core_count(void);

// Writes the numbers of the processors that the calling thread may use, and returns how many there are.
int bench_processors(int *numbers, int capacity);

// Lets the calling thread, and the programs that it starts, use these processors only. Returns 0 on success.
int bench_run_on(const int *numbers, int count);

// Takes 1 from a number that several threads count down, and returns what is left.
static inline long bench_count_down(long *number) { return __atomic_sub_fetch(number, 1, __ATOMIC_ACQ_REL); }

// MARK: Process

// Keeps huge pages out of a memory row: one of them would count 2 MiB for a few bytes. Returns 0 on success.
int bench_forbid_huge_pages(void);

// Returns the allocator's free pages to the kernel, so that what stays resident is in use.
void bench_trim_heap(void);

// Raises the soft limit of open descriptors to the hard limit.
void bench_raise_descriptor_limit(void);

// Prints the path of each libdispatch that this process has mapped, one line each; the first is the one that answers
// calls. Returns the exit status for the program.
int bench_print_dispatch_libraries(void);

// Computes until the parent ends or kills this process, `seconds` at most.
void bench_stay_busy(unsigned seconds) __attribute__((noreturn));

// MARK: Echo rows: the listening socket and the clients are the same for all contestants

// Opens a non-blocking TCP socket that listens on the loopback interface, and stores its port in `port`. -1: errno.
int bench_listen(int *port);

// Accepts the next connection, non-blocking and without delay for small messages. -1 and EAGAIN: there is none.
int bench_accept(int listener);

// Runs the program echo-load, which is in the folder of the calling program, to its end. It opens the connections and
// makes a warm-up pass and `passes` timed passes of `trips` round trips each. Stores the nanoseconds of the quickest
// pass in `nanoseconds` and the number of bytes that came back (all compared) in `bytes`. Returns 0; or -1 after a
// message on standard error.
int bench_run_echo_load(int port, int connections, long trips, int passes, long *nanoseconds, long *bytes);

// The same for throughput: `processes` programs at once, whose passes of `milliseconds` begin together. Also stores how
// many round trips the best pass made.
int bench_run_echo_loads(
    int port, int connections, int processes, long milliseconds, int passes, long *nanoseconds, long *bytes,
    long *trips);

// MARK: File rows

// Creates a file without a name in TMPDIR (or /tmp), full of data that differ from page to page, in the page cache and
// written back. It is gone once it is closed. Returns a descriptor at offset 0. -1: errno.
int bench_make_cached_file(long bytes);

// Adds up one byte of each 512 of the `count` bytes at `offset` of a file: cheap beside copying them, but wrong as soon
// as a page is missing, doubled or in the wrong place.
static inline uint64_t bench_sample(const uint8_t *bytes, long count, long offset) {
  uint64_t sum = 0;
  for (long at = (512 - offset % 512) % 512; at < count; at += 512)
    sum += (uint64_t)(bytes[at] + 1) * (uint64_t)((offset + at) / 512 + 1);
  return sum;
}

#ifdef __cplusplus
}
#endif

#endif
