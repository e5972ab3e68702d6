// Threads that spin on a variable: a loop without any call, until another thread has changed it. It comes to no point, and
// no other thread would ever run. The watchdog asks the thread that runs, by a signal, where it is. If the same state comes
// back again and again, the thread cannot leave its loop by itself, and the signal's handler comes to a point: a yield.
//
// The state has the registers, the innermost part of the stack, and the variables of the program. A loop that counts or
// computes changes one of them, so it does not count as spinning here; counting.c looks closer.

#include "exploring.h"

uint64_t explored_asked;

// MARK: When nothing but spinning is left

/// Spins since a thread of the program came to another point.
static uint32_t alone;
/// Whether one of those spins was that of a loop that counts. Then the program may compute.
static bool has_counted;

bool explore_spins_certainly(void) { return !has_counted; }

void explore_note_spin(struct explored *self) {
  // It rests for longer and longer, so that threads that spin do not keep those away that they wait for.
  enum { MOST_DOUBLINGS = 7 };
  self->spins++;
  self->rests_until = explored_file->steps + (1ull << (self->spins < MOST_DOUBLINGS ? self->spins : MOST_DOUBLINGS));
  alone++;
}

void explore_note_progress(void) {
  alone = 0;
  has_counted = false;
}

// Threads rest by turns, so all that can go on have spun by then.
bool explore_only_spins(void) { return alone > 4 * explored_live_count; }
bool explore_spins_for_ever(void) { return alone > 50 + 8 * explored_live_count; }

#if defined(__x86_64__)

#include <string.h>
#include <ucontext.h>

enum { MOST_LOOKS = 64, NEEDED = 3, STACK_BYTES = 1024, RED_ZONE = 128, DEEPEST = 64 << 20 };
/// One of the signals that the engine's threads do not block.
enum { ASKING = SIGPROF };
static uint64_t states[MOST_LOOKS];
static uint32_t look_count, known_count;
/// The number of decisions when the looks began.
static uint64_t looks_since;
/// Whether a thread has spun: then the next one is asked sooner.
static uint32_t has_spun;

static uint64_t mixed(uint64_t hash, const void *bytes, size_t size) {
  const uint8_t *next = bytes;
  for (uint64_t word; size >= sizeof word; size -= sizeof word, next += sizeof word) {
    memcpy(&word, next, sizeof word);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

static uint64_t state_of(const struct explored *self, const mcontext_t *machine) {
  uint64_t hash = mixed(0, machine->gregs, (REG_RIP + 1) * sizeof *machine->gregs);
  if (machine->fpregs) hash = mixed(hash, machine->fpregs->_xmm, sizeof machine->fpregs->_xmm);
  uintptr_t begin = ((uintptr_t)machine->gregs[REG_RSP] - RED_ZONE) & -8ul, size = self->stack_end - begin;
  // Nothing says where a stack ends that is not the thread's own.
  if (size > DEEPEST) size = RED_ZONE;
  if (size > STACK_BYTES) size = STACK_BYTES;
  hash = mixed(hash, (const void *)begin, size);
  size_t data_size;
  const void *data = explore_program_data(&data_size);
  return mixed(hash, data, data_size);
}

// MARK: The handler

static void ask(int signal, siginfo_t *information, void *context) {
  (void)signal, (void)information;
  struct explored *self = explore_current();
  if (!self) return;
  if (looks_since != explored_file->steps) look_count = known_count = 0;
  looks_since = explored_file->steps;
  int failure = errno;
  const mcontext_t *machine = &((const ucontext_t *)context)->uc_mcontext;
  uint64_t state = state_of(self, machine);
  for (uint32_t i = 0; i < look_count && i < MOST_LOOKS; i++) {
    if (states[i] != state) continue;
    known_count++;
    break;
  }
  states[look_count++ % MOST_LOOKS] = state;
  // Not where it may have a lock of the C library, or of a runtime.
  const uintptr_t place[2] = {(uintptr_t)machine->gregs[REG_RBP], (uintptr_t)machine->gregs[REG_RIP]};
  if (known_count < NEEDED) {
    if (!explore_counts(self, context)) return;
    has_counted = true;
  }
  if (!explore_is_program((const void *)place[1])) return;
  // ORDERING: relaxed; the watchdog asks sooner once it sees it.
  __atomic_store_n(&has_spun, 1, __ATOMIC_RELAXED);
  explore_yield(self, OP_SPIN, NULL, place);
  errno = failure;
}

// MARK: For the watchdog

uint64_t explore_spin_patience(void) {
  // ORDERING: relaxed; pairs with the store in `ask`.
  return __atomic_load_n(&has_spun, __ATOMIC_RELAXED) ? 2000000 : 20000000;
}

void explore_ask(const struct explored *thread) {
  struct sigaction current;
  if (explore_set_action(ASKING, NULL, &current) != 0) return;
  if (current.sa_handler == SIG_DFL) {
    struct sigaction action = {.sa_sigaction = ask, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (explore_set_action(ASKING, &action, NULL) != 0) return;
  } else if (current.sa_sigaction != ask) {
    // The program uses the signal itself.
    return;
  }
  // ORDERING: relaxed; the thread that gets the signal reads it later.
  __atomic_store_n(&explored_asked, 1ull << (ASKING - 1), __ATOMIC_RELAXED);
  SYSTEM3(SYS_tgkill, SYSTEM1(SYS_getpid, 0), thread->id, ASKING);
}

#else

uint64_t explore_spin_patience(void) { return NEVER; }
void explore_ask(const struct explored *thread) { (void)thread; }

#endif
