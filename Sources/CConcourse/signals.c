#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

// Only what is safe in a signal handler happens here: atomics without locks and one write.

static _Atomic uint64_t counts[NSIG];
static _Atomic int report_to = -1;
// Written before the counting handler is installed, and never while it is.
static struct sigaction before[NSIG];

int concourse_signal_limit(void) { return NSIG; }

void concourse_signal_report_to(int descriptor) { atomic_store(&report_to, descriptor); }

uint64_t concourse_signal_take(int signal) { return atomic_exchange(&counts[signal], 0); }

// The signals whose earlier handler this thread is calling. The same signal cannot come in between, being
// blocked meanwhile: who finds its bit set has been called by that handler, which chains back to us.
static __thread uint64_t chaining __attribute__((tls_model("initial-exec")));

static void count_signal(int signal, siginfo_t *information, void *context) {
  uint64_t bit = (uint64_t)1 << (signal - 1);
  if (chaining & bit) return;
  int interrupted = errno;
  atomic_fetch_add(&counts[signal], 1);
  // A full counter leaves the descriptor readable all the same.
  (void)eventfd_write(atomic_load(&report_to), 1);
  struct sigaction next = before[signal];
  chaining |= bit;
  if (next.sa_flags & SA_SIGINFO) {
    if (next.sa_sigaction != NULL) next.sa_sigaction(signal, information, context);
  } else if (next.sa_handler != SIG_DFL && next.sa_handler != SIG_IGN) {
    next.sa_handler(signal);
  }
  chaining &= ~bit;
  errno = interrupted;
}

int concourse_signal_count(int signal) {
  struct sigaction present;
  if (sigaction(signal, NULL, &present) != 0) return -errno;
  // A program that has saved and restored the disposition may have lost the flags, not the address.
  if (present.sa_sigaction != count_signal) {
    before[signal] = present;
  } else if (present.sa_flags & SA_SIGINFO) {
    return 0;
  }
  struct sigaction counting = {.sa_sigaction = count_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
  sigemptyset(&counting.sa_mask);
  return sigaction(signal, &counting, NULL) == 0 ? 0 : -errno;
}
