// Threads that count while they spin: a loop that ends when another thread has changed a variable, and that counts its
// rounds. No state comes back, so spinning.c does not know it. This file compares
// snapshots of the thread, taken at the same instruction, word for word. If few words have changed, and each only ascends, only descends or stays within a small range,
// they are counters, and the loop does nothing else that can be seen. Counters of rounds grow in proportion; a sum does not.
//
// A loop that only counts to a limit looks so, too, though it ends by itself. It yields then, which is right in any
// program, at a moment that differs between runs. So the first time it takes long until a thread counts as one that counts;
// and if nothing else can go on, that is no hang: the program may compute.

#include "exploring.h"

#if defined(__x86_64__)

#include <string.h>
#include <ucontext.h>

enum { RED_ZONE = 128, STACK_WORDS = 144, REGISTERS = REG_RIP, VECTOR_WORDS = 2 * 16, DATA_WORDS = 32 * 1024 };
enum {
  /// Looks after which the instruction is chosen in which the thread was most often.
  TALLY = 60,
  /// Looks in that instruction, for the first time and in a loop that has counted before; and looks elsewhere in a row after
  /// which another one is chosen.
  NEEDED = 8,
  NEEDED_AGAIN = 3,
  MISSES = 200,
  MOST_MATCHES = 100,
  /// Looks before the first time.
  PATIENCE = 150,
  MOST_PLACES = 128,
};
enum { MOST_COUNTERS = 32, SMALL = 1 << 16, MOST_LOOPS = 16 };

/// What the thread could see at the last look.
static struct {
  uintptr_t stack_pointer;
  uint64_t words[REGISTERS + VECTOR_WORDS + STACK_WORDS + DATA_WORDS];
  uint32_t count;
} last;

/// A word that has changed.
static struct counter {
  uint32_t place;
  bool ascends, descends;
  uint64_t least, most;
  /// At the first look, at one of those after it, and at the last.
  uint64_t first, middle, now;
} counters[MOST_COUNTERS];
static uint32_t counter_count, matches, misses, looks;
static uint64_t looks_since;
/// How often the thread was in which instruction, and the one that is chosen; 0 if none is.
static struct tally {
  uintptr_t place;
  uint32_t count;
} tallies[MOST_PLACES];
static uint32_t tally_count;
static uintptr_t chosen;
/// Loops that have counted before.
static uintptr_t loops[MOST_LOOPS];
static uint32_t loop_count;

static bool note(uint32_t place, uint64_t before, uint64_t now) {
  struct counter *counter = counters;
  while (counter < counters + counter_count && counter->place != place) counter++;
  if (counter == counters + MOST_COUNTERS) return false;
  if (counter == counters + counter_count) {
    *counter = (struct counter){.place = place, .least = before, .most = before, .first = before, .middle = before};
    counter_count++;
  }
  counter->ascends |= now > before;
  counter->descends |= now < before;
  if (now < counter->least) counter->least = now;
  if (now > counter->most) counter->most = now;
  if (matches == NEEDED / 2) counter->middle = now;
  counter->now = now;
  return true;
}

/// Takes the words of a look, and compares them with those of the last one if that was in the same instruction. False if
/// too many have changed.
static bool compare(const uint64_t *words, uint32_t size, bool is_same) {
  bool fits = true;
  uint64_t *before = last.words + last.count;
  for (uint32_t i = 0; i < size && is_same && fits; i++)
    if (before[i] != words[i]) fits = note(last.count + i, before[i], words[i]);
  memcpy(before, words, size * sizeof *words);
  last.count += size;
  return fits;
}

static bool look(const struct explored *self, const mcontext_t *machine, bool is_same) {
  uint64_t registers[REGISTERS];
  memcpy(registers, machine->gregs, sizeof registers);
  last.count = 0;
  bool fits = compare(registers, REGISTERS, is_same);
  if (machine->fpregs) fits &= compare((const uint64_t *)(const void *)machine->fpregs->_xmm, VECTOR_WORDS, is_same);
  uintptr_t begin = (last.stack_pointer - RED_ZONE) & -8ul, size = (self->stack_end - begin) / 8;
  // Nothing says where a stack ends that is not the thread's own.
  if (size > (64u << 20) / 8) size = RED_ZONE / 8;
  fits &= compare((const uint64_t *)begin, size < STACK_WORDS ? (uint32_t)size : STACK_WORDS, is_same);
  const void *data = explore_program_data(&size);
  fits &= compare(data, size / 8 < DATA_WORDS ? (uint32_t)(size / 8) : DATA_WORDS, is_same);
  return fits;
}

static uint64_t distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

/// Whether both have grown in proportion, but for a thousandth.
static bool are_proportional(const struct counter *a, const struct counter *b) {
  typedef unsigned __int128 wide;
  wide left = (wide)distance(a->first, a->middle) * distance(b->middle, b->now);
  wide right = (wide)distance(b->first, b->middle) * distance(a->middle, a->now);
  return (left < right ? right - left : left - right) <= right / 1000;
}

static bool all_count(void) {
  const struct counter *large = NULL;
  for (uint32_t i = 0; i < counter_count; i++) {
    const struct counter *counter = &counters[i];
    if (counter->most - counter->least < SMALL) continue;
    if ((counter->ascends && counter->descends) || (large && !are_proportional(large, counter))) return false;
    large = counter;
  }
  return counter_count > 0;
}

/// Whether the instruction is one by which a loop is known that has counted before.
static bool is_known(uintptr_t place) {
  for (uint32_t i = 0; i < loop_count && i < MOST_LOOPS; i++)
    if (loops[i] == place) return true;
  return false;
}

static uintptr_t most_frequent(void) {
  const struct tally *best = tallies;
  for (uint32_t i = 1; i < tally_count; i++)
    if (tallies[i].count > best->count) best = &tallies[i];
  return best->place;
}

static void choose(uintptr_t place) {
  if (is_known(place)) {
    chosen = place;
    return;
  }
  uint32_t i = 0;
  while (i < tally_count && tallies[i].place != place) i++;
  if (i == tally_count && i < MOST_PLACES) tallies[tally_count++] = (struct tally){.place = place};
  if (i < MOST_PLACES) tallies[i].count++;
  if (looks >= TALLY) chosen = most_frequent();
}

static void begin_anew(void) {
  matches = misses = tally_count = 0;
  chosen = 0;
}

bool explore_counts(const struct explored *self, const void *context) {
  const mcontext_t *machine = &((const ucontext_t *)context)->uc_mcontext;
  uintptr_t place = (uintptr_t)machine->gregs[REG_RIP], stack_pointer = (uintptr_t)machine->gregs[REG_RSP];
  if (looks_since != explored_file->steps) {
    begin_anew();
    looks = 0;
  }
  looks_since = explored_file->steps;
  looks++;
  // What a loop calls in libraries is not looked at.
  if (!explore_is_program((const void *)place)) return false;
  if (!chosen) choose(place);
  if (place != chosen) {
    if (chosen && ++misses > MISSES) begin_anew();
    return false;
  }
  bool is_same = matches > 0 && matches <= MOST_MATCHES && stack_pointer == last.stack_pointer;
  if (!is_same) counter_count = matches = 0;
  last.stack_pointer = stack_pointer;
  misses = 0;
  matches = look(self, machine, is_same) ? matches + 1 : 0;
  bool is_again = is_known(place);
  if (matches < (is_again ? NEEDED_AGAIN : NEEDED) || (looks < PATIENCE && !is_again) || !all_count()) return false;
  if (!is_again) loops[loop_count++ % MOST_LOOPS] = place;
  return true;
}

#endif
