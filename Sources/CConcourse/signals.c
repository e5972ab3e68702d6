#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

// Only async-signal-safe operations in the handler: lock-free atomics and one write.

static _Atomic uint64_t counts[NSIG];
static _Atomic int report_to = -1;
// The previous handlers, two slots per signal; `in_use` is the index of the latest. A slot is written while the
// counting handler is not installed, though the handler may still be running.
static struct sigaction before[NSIG][2];
static _Atomic unsigned in_use[NSIG];
// Whether the counting handler has ever been installed. GUARDED BY the caller of `concourse_signal_count`.
static bool was_installed[NSIG];
// Whether the previous handler was installed over ours and may therefore call ours.
static _Atomic bool may_come_back[NSIG];

int concourse_signal_limit(void) { return NSIG; }

void concourse_signal_report_to(int descriptor) { atomic_store(&report_to, descriptor); }

uint64_t concourse_signal_take(int signal) { return atomic_exchange(&counts[signal], 0); }

// The signals whose previous handler this thread is calling; each is blocked during that call. If the bit is set on
// entry and the previous handler may call ours, that handler made the call. If it may not call ours, it has unblocked
// the signal or left by a jump.
static __thread uint64_t chaining __attribute__((tls_model("initial-exec")));

static void count_signal(int signal, siginfo_t *information, void *context) {
  uint64_t bit = (uint64_t)1 << (signal - 1);
  if ((chaining & bit) && atomic_load(&may_come_back[signal])) return;
  int interrupted = errno;
  atomic_fetch_add(&counts[signal], 1);
  // A full counter leaves the descriptor readable all the same.
  (void)eventfd_write(atomic_load(&report_to), 1);
  struct sigaction next = before[signal][atomic_load(&in_use[signal])];
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
  // A program that saved and restored the disposition may have dropped our flags, but not our address.
  if (present.sa_sigaction != count_signal) {
    // A running handler may be reading the other slot.
    unsigned unused = !atomic_load(&in_use[signal]);
    before[signal][unused] = present;
    atomic_store(&in_use[signal], unused);
    // The present handler replaced ours and may call it.
    bool calls = (present.sa_flags & SA_SIGINFO) || (present.sa_handler != SIG_DFL && present.sa_handler != SIG_IGN);
    atomic_store(&may_come_back[signal], was_installed[signal] && calls);
  } else if (present.sa_flags & SA_SIGINFO) {
    return 0;
  }
  struct sigaction counting = {.sa_sigaction = count_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
  sigemptyset(&counting.sa_mask);
  if (sigaction(signal, &counting, NULL) != 0) return -errno;
  was_installed[signal] = true;
  return 0;
}

void concourse_signal_unblock(uint64_t mask) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal = 1; signal < NSIG && signal <= 64; signal++)
    if (mask >> (signal - 1) & 1) sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

// Signals that the program may send to the runtime's threads; bit n - 1 stands for signal n.
static _Atomic uint64_t allowed;
// The allowed signals that this thread has unblocked.
static __thread uint64_t adopted __attribute__((tls_model("initial-exec")));

int concourse_signal_allow(int signal) {
  if (signal < 1 || signal >= NSIG || signal > 64 || signal == SIGKILL || signal == SIGSTOP) return EINVAL;
  atomic_fetch_or(&allowed, (uint64_t)1 << (signal - 1));
  return 0;
}

void concourse_signal_exempt(void *blocked) {
  uint64_t mask = atomic_load(&allowed);
  for (int signal = 1; mask != 0; signal++, mask >>= 1)
    if (mask & 1) sigdelset(blocked, signal);
}

void concourse_signal_adopt(void) {
  // ORDERING: relaxed; the mask is the only data.
  uint64_t mask = atomic_load_explicit(&allowed, memory_order_relaxed);
  if (mask == adopted) return;
  adopted = mask;
  concourse_signal_unblock(mask);
}
