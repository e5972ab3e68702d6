#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

// Only async-signal-safe operations in the handler: lock-free atomics, fstat, one write, sigaction and raise.

static _Atomic uint64_t counts[NSIG];
static _Atomic int report_to = -1;
// A function that the counting handler replaced; NULL for none. Constant, and never freed: a handler may be reading it.
struct former {
  void (*function)(int, siginfo_t *, void *);
  bool takes_information;
  // SA_RESETHAND: the function is called for one delivery.
  bool is_called_once;
  // How the program had it called: what is blocked meanwhile, and what happens to interrupted calls.
  sigset_t mask;
  int flags;
  const struct former *next;
};
// Takes the place of a function that was to be called once, and has been.
static const struct former spent = {.flags = SA_RESTART};
// The one that was replaced last.
static const struct former *_Atomic before[NSIG];
// All of them. GUARDED BY the caller of `concourse_signal_count`.
static const struct former *formers[NSIG];
// Whether the counting handler has ever been installed. GUARDED BY the caller of `concourse_signal_count`.
static bool was_installed[NSIG];
// Whether the previous handler was installed over ours and may therefore call ours.
static _Atomic bool may_come_back[NSIG];

int concourse_signal_limit(void) { return NSIG; }

void concourse_signal_report_to(int descriptor) { atomic_store(&report_to, descriptor); }

void concourse_signal_note_fork(void) { atomic_store(&report_to, -1); }

uint64_t concourse_signal_take(int signal) { return atomic_exchange(&counts[signal], 0); }

// The signals whose previous handler this thread is calling; each is blocked during that call. If the bit is set on
// entry and the previous handler may call ours, that handler made the call. If it may not call ours, it has unblocked
// the signal or left by a jump. A handler that leaves by a jump and may call ours is not called again on that thread.
static __thread uint64_t chaining __attribute__((tls_model("initial-exec")));

// Ends the process if the signal reports a fault of this thread. A handler that returns from one repeats the instruction,
// which faults again, now with the default action.
static void end_after_fault(int signal, const siginfo_t *information) {
  bool is_fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP;
  // Not positive: sent by a process.
  if (!is_fault || information->si_code <= 0) return;
  struct sigaction by_default = {.sa_handler = SIG_DFL};
  (void)sigaction(signal, &by_default, NULL);
  // A breakpoint of x86 and a report of broken memory are not repeated. The signal is blocked until the handler has
  // returned.
  if (signal == SIGTRAP || (signal == SIGBUS && information->si_code == BUS_MCEERR_AO)) (void)raise(signal);
}

static void count_signal(int signal, siginfo_t *information, void *context) {
  uint64_t bit = (uint64_t)1 << (signal - 1);
  if ((chaining & bit) && atomic_load(&may_come_back[signal])) {
    // The previous handler passes the fault on, so no handler takes it.
    end_after_fault(signal, information);
    return;
  }
  int interrupted = errno;
  atomic_fetch_add(&counts[signal], 1);
  int descriptor = atomic_load(&report_to);
  // The program may have closed it, and opened a file of its own under that number. A full counter leaves the descriptor
  // readable all the same.
  if (descriptor >= 0 && concourse_is_anonymous(descriptor)) (void)eventfd_write(descriptor, 1);
  const struct former *next = atomic_load(&before[signal]);
  // ORDERING: sequentially consistent, as the load above; both pair with the store in `remember`, which publishes the
  // fields. The exchange lets one of several threads call a function that is called once; the others get the present one.
  while (next && next->is_called_once && !atomic_compare_exchange_weak(&before[signal], &next, &spent)) continue;
  if (next && next->function) {
    chaining |= bit;
    if (next->takes_information)
      next->function(signal, information, context);
    else
      ((void (*)(int))next->function)(signal);
    chaining &= ~bit;
  } else {
    end_after_fault(signal, information);
  }
  errno = interrupted;
}

// Makes the function of a disposition the one that the counting handler calls. A program that installs two in turn does
// not make the list longer.
static bool remember(int signal, const struct sigaction *present) {
  bool calls = present->sa_handler != SIG_DFL && present->sa_handler != SIG_IGN;
  struct former wanted = {.flags = SA_RESTART | (present->sa_flags & (SA_NOCLDSTOP | SA_NOCLDWAIT))};
  if (calls) {
    wanted.function = present->sa_sigaction;
    wanted.takes_information = present->sa_flags & SA_SIGINFO;
    wanted.is_called_once = present->sa_flags & SA_RESETHAND;
    wanted.mask = present->sa_mask;
    wanted.flags = present->sa_flags & ~(int)SA_RESETHAND;
  }
  bool may_call_ours = was_installed[signal] && calls;
  // `chaining` tells a call of ours by the function from a delivery, as long as deliveries wait.
  if (may_call_ours) wanted.flags &= ~SA_NODEFER;
  const struct former *known = formers[signal];
  while (known && (known->function != wanted.function || known->takes_information != wanted.takes_information ||
                   known->is_called_once != wanted.is_called_once || known->flags != wanted.flags ||
                   memcmp(&known->mask, &wanted.mask, sizeof wanted.mask) != 0))
    known = known->next;
  if (!known) {
    struct former *former = malloc(sizeof *former);
    if (!former) return false;
    *former = wanted;
    former->next = formers[signal];
    known = formers[signal] = former;
  }
  atomic_store(&before[signal], known);
  // It replaced ours and may call it.
  atomic_store(&may_come_back[signal], may_call_ours);
  return true;
}

int concourse_signal_count(int signal) {
  // The system fills a part of the mask.
  struct sigaction present = {.sa_flags = 0};
  if (sigaction(signal, NULL, &present) != 0) return -errno;
  // A program that saved and restored the disposition may have dropped our flags, but not our address.
  if (present.sa_sigaction != count_signal) {
    if (!remember(signal, &present)) return -ENOMEM;
  } else if (present.sa_flags & SA_SIGINFO) {
    return 0;
  }
  const struct former *next = atomic_load(&before[signal]);
  struct sigaction counting = {.sa_sigaction = count_signal, .sa_mask = next->mask};
  counting.sa_flags = next->flags | SA_SIGINFO | SA_ONSTACK;
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
  concourse_note_unblocked(mask);
  concourse_signal_unblock(mask);
}
