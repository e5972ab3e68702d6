#ifndef ROWS_H
#define ROWS_H

// A program of rows in C or C++: it answers --list, --row NAME [--quick] and --library as the driver expects.

#include "cbench.h"

#ifdef __cplusplus
extern "C" {
#endif

struct measurement {
  // In the row's unit.
  double value;
  // How many operations the value stands for, and a number that the work itself computed.
  long operations, check;
};

struct row {
  const char *name;
  struct measurement (*measure)(long count);
  // Operations of a pass; a tenth of them in a quick run.
  long count;
  const char *question;
  // NULL stands for nanoseconds.
  const char *unit;
};

// Runs the program. `families` ends with NULL, and each family with a row without a name. Returns the exit status.
int run_rows(int count, char **words, const struct row *const *families);

// Nanoseconds for one of `operations`.
static inline struct measurement per_operation(const struct bench_passes *passes, long operations, long check) {
  struct measurement result = {(double)passes->quickest / (double)operations, operations, check};
  return result;
}

// Ends the process with a message unless both are equal: a wrong result must never become a number.
void verify(long observed, long expected, const char *what);

// A number that work items add to, on cache lines of its own. It is shared without atomics on purpose: rows add to it
// only under the exclusion that they measure, so a library that breaks the exclusion shows a wrong sum.
struct counter {
  long value;
} __attribute__((aligned(128)));

static inline void add_one(void *counter) { ((struct counter *)counter)->value++; }

// One byte for each item, for items that run at the same time: each touches only its own byte.
struct slots {
  char *bytes;
  long count;
};

struct slots make_slots(long count);
static inline void mark_slot(void *byte) { ++*(char *)byte; }
// Returns how many slots were marked exactly once since the last call, and clears them.
long take_marked_once(struct slots slots);

#ifdef __cplusplus
}
#endif

#endif
