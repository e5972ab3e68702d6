#ifndef CBENCH_H
#define CBENCH_H

// What the benchmarks need and Swift cannot say.

// Costs nothing and does nothing, but the compiler must assume that it uses `value` and touches
// memory: a loop around it cannot be removed, and a result handed to it cannot be computed away.
// The rivals' programs use the same construct, so an "empty body" is the same body everywhere.
static inline void bench_opaque(long value) { __asm__ volatile("" : : "r"(value) : "memory"); }

// Keeps huge pages out of a memory row: one of them would count 2 MiB for a few bytes.
// Returns 0 when the kernel agreed.
int bench_forbid_huge_pages(void);

// How many cores the calling thread may use.
int bench_core_count(void);

// Keeps the calling thread on one of the cores it may use: the index-th, counted round.
// Returns 0 when the kernel agreed.
int bench_pin_to_core(int index);

// The environment for a child process. (Swift 6 refuses the global variable itself.)
char *_Nullable *_Nonnull bench_environment(void);

#endif
