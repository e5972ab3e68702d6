#ifndef CBENCH_H
#define CBENCH_H

#include <stdint.h>

// What the benchmarks need and Swift cannot say, and what every contestant must do in the same words.

// Costs nothing and does nothing, but the compiler must assume that it uses `value` and touches
// memory: a loop around it cannot be removed, and a result handed to it cannot be computed away.
// The rivals' programs use the same construct, so an "empty body" is the same body everywhere.
static inline void bench_opaque(long value) { __asm__ volatile("" : : "r"(value) : "memory"); }

// Keeps huge pages out of a memory row: one of them would count 2 MiB for a few bytes.
// Returns 0 when the kernel agreed.
int bench_forbid_huge_pages(void);

// Hands the allocator's free pages back to the kernel, so that what stays resident is in use.
void bench_trim_heap(void);

// How many cores the calling thread may use.
int bench_core_count(void);

// Keeps the calling thread on one of the cores it may use: the index-th, counted round.
// Returns 0 when the kernel agreed.
int bench_pin_to_core(int index);

// The environment for a child process. (Swift 6 refuses the global variable itself.)
char *_Nullable *_Nonnull bench_environment(void);

// Prints the path of each libdispatch that this process has mapped, the one that answers calls first: one
// line each. Returns 0, or what the program should exit with.
int bench_print_dispatch_libraries(void);

// Computes until the parent ends or kills this process, `seconds` at most.
void bench_stay_busy(unsigned seconds) __attribute__((noreturn, swift_name("bench_stay_busy(until:)")));

// Raises the soft limit of open descriptors to the hard one. Returns the limit then in force.
long bench_raise_descriptor_limit(void);

// Echo rows: the listening socket and the clients are the same for all contestants.

// A listening TCP socket on the loopback interface, non-blocking; its port goes to `port`. -1: errno.
int bench_listen(int *_Nonnull port);

// The next connection, non-blocking and without delay for small messages; -1 and EAGAIN: none waits.
int bench_accept(int listener);

// Starts the program echo-load, which lies beside the calling program, and waits for its end. It opens
// the connections and makes `passes` + 1 passes of `trips` round trips each, the first as a warm-up.
// The nanoseconds of the quickest pass go to `nanoseconds`, all bytes that came back (and were
// compared) to `bytes`. Returns 0; -1 if anything was wrong, which is then on standard error.
int bench_run_echo_load(
    int port, int connections, long trips, int passes, long *_Nonnull nanoseconds, long *_Nonnull bytes);

// File rows.

// A file without a name in TMPDIR (or /tmp), full of data that differ from page to page, in the page
// cache and written back. It is gone once it is closed. Returns a descriptor at offset 0; -1: errno.
int bench_make_cached_file(long bytes);

// Adds up one byte of each 512 of `count` bytes that stand at `offset` of a file: cheap beside copying
// them, but wrong as soon as a page is missing, doubled or in the wrong place.
static inline uint64_t bench_sample(const uint8_t *_Nonnull bytes, long count, long offset) {
  uint64_t sum = 0;
  for (long at = (512 - offset % 512) % 512; at < count; at += 512)
    sum += (uint64_t)(bytes[at] + 1) * (uint64_t)((offset + at) / 512 + 1);
  return sum;
}

#endif
