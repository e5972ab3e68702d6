// Signals: which thread takes one, and the calls that send them or wait for them.

#include "exploring.h"

#include <string.h>

bool explored_signals_sent;

static bool is_ignored(int signal) {
  struct sigaction action;
  if (sigaction(signal, NULL, &action) != 0 || action.sa_handler == SIG_IGN) return true;
  return action.sa_handler == SIG_DFL &&
         (signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT);
}

int explore_set_action(int signal, const struct sigaction *action, struct sigaction *former) {
  static int (*real)(int, const struct sigaction *, struct sigaction *);
  if (!real) *(void **)&real = explore_real("sigaction");
  return real(signal, action, former);
}

bool explore_takes(const struct explored *thread, int signal) {
  uint64_t bit = 1ull << (signal - 1);
  if (thread->wakes & WAKES_SIGNALS && thread->awaited & bit) return true;
  return thread->signals & bit && !is_ignored(signal);
}

bool explore_restarts_after(int signal) {
  struct sigaction action;
  return sigaction(signal, NULL, &action) == 0 && action.sa_flags & SA_RESTART;
}

// The kernel discards an ignored signal unless the first thread blocks it. Without the token that thread blocks all, so the
// signal would stay pending.
bool explore_discards(int signal) {
  if (signal < 1 || signal > 64 || !is_ignored(signal)) return false;
  const struct explored *first = &explored_threads[0];
  uint64_t bit = 1ull << (signal - 1);
  return first != explored_self && first->state != CONCOURSE_EXPLORING_ENDED && first->signals & bit &&
         !(first->wakes & WAKES_SIGNALS && first->awaited & bit);
}

/// Of those that the calling thread blocks, the ones that it or the process has got.
static uint64_t pending_signals(void) {
  uint64_t pending = 0;
  if (SYSTEM3(SYS_rt_sigpending, &pending, MASK_SIZE, 0) != 0) return 0;
  // ORDERING: relaxed; a signal that is pending has been sent after the store.
  uint64_t asked = __atomic_load_n(&explored_asked, __ATOMIC_RELAXED);
  // The program may have taken the signal for itself since.
  struct sigaction present;
  if (asked && explore_set_action(SIGPROF, NULL, &present) == 0 && explore_is_own_code((const void *)present.sa_sigaction))
    pending &= ~asked;
  return pending;
}

// Of the signals that the process has got, the thread with the lowest number that would take one goes on, and takes it.
bool explore_deliver_signals(void) {
  explored_signals_sent = false;
  uint64_t pending = pending_signals();
  if (pending == 0) return false;
  bool found = false;
  for (int signal = 1; signal <= 64; signal++) {
    uint64_t bit = 1ull << (signal - 1);
    if (!(pending & bit & explored_blockable)) continue;
    for (uint32_t i = 0; i < explored_live_count; i++) {
      struct explored *thread = explored_live[i];
      if (thread->state != CONCOURSE_EXPLORING_WAITING || !explore_takes(thread, signal)) continue;
      explore_interrupt_by(thread, signal);
      found = true;
      break;
    }
  }
  return found;
}

void explore_block_signals(struct explored *self) {
  if (!self || self->has_mask) return;
  uint64_t all = explored_blockable;
  SYSTEM4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &self->mask, MASK_SIZE);
  self->has_mask = true;
  self->signals = ~(self->waiting_mask ? *self->waiting_mask : self->mask);
}

const uint64_t *explore_mask(const sigset_t *set, uint64_t *kept) {
  if (!set) return NULL;
  memcpy(kept, set, sizeof *kept);
  // Handlers may run with this mask, and come to the traps of exchanges.c.
  *kept &= ~(1ull << (SIGTRAP - 1));
  return kept;
}

bool explore_take_admitted(const uint64_t *mask) {
  uint64_t admitted = mask ? pending_signals() & ~*mask : 0, former;
  bool found = false;
  for (int signal = 1; signal <= 64; signal++) found |= admitted >> (signal - 1) & 1 && !is_ignored(signal);
  if (!found) return false;
  SYSTEM4(SYS_rt_sigprocmask, SIG_SETMASK, mask, &former, MASK_SIZE);
  SYSTEM4(SYS_rt_sigprocmask, SIG_SETMASK, &former, NULL, MASK_SIZE);
  return true;
}

// MARK: Calls

/// The kernel gives a signal of the process to the first thread, if that one takes it. Without the token that thread blocks
/// all, so the kernel would give the signal to the calling thread. Returns false if the call has to be made.
static bool send_to_first(struct explored *self, int signal, const union sigval *value) {
  struct explored *first = &explored_threads[0];
  struct sigaction action;
  if (signal < 1 || signal > 64 || !(explored_blockable & 1ull << (signal - 1))) return false;
  if (first == self || first->state == CONCOURSE_EXPLORING_ENDED || !first->has_mask) return false;
  if (!explore_takes(first, signal) || sigaction(signal, NULL, &action) != 0) return false;
  // What ends the process ends it at once.
  if (action.sa_handler == SIG_DFL) return false;
  siginfo_t information = {.si_signo = signal, .si_code = SI_QUEUE};
  information.si_pid = (pid_t)SYSTEM1(SYS_getpid, 0);
  information.si_uid = getuid();
  if (value) information.si_value = *value;
  // The kernel lets only the first thread say that a signal comes from `kill`.
  long result = value ? SYSTEM4(SYS_rt_tgsigqueueinfo, information.si_pid, first->id, signal, &information)
                      : SYSTEM3(SYS_tgkill, information.si_pid, first->id, signal);
  if (result != 0) return false;
  explore_interrupt_by(first, signal);
  return true;
}

// The call itself runs handlers of the calling thread; another thread may have to take the signal.
#define SENDS(name, value, parameters, arguments)                                          \
  INTERPOSED(int, name, parameters) {                                                      \
    struct explored *self = explore_current();                                             \
    if (self) explore_point(self, OP_KILL, NULL, HERE);                                    \
    bool is_own = self && process == (pid_t)SYSTEM1(SYS_getpid, 0);                        \
    bool is_done = is_own && (explore_discards(signal) || send_to_first(self, signal, value)); \
    int result = is_done ? 0 : REAL(name)(arguments);                                      \
    if (!self) return result;                                                              \
    explored_signals_sent = true;                                                          \
    explore_point(self, OP_KILL, NULL, HERE);                                              \
    return result;                                                                         \
  }
SENDS(kill, NULL, LIST(pid_t process, int signal), LIST(process, signal))
SENDS(sigqueue, &value, LIST(pid_t process, int signal, const union sigval value), LIST(process, signal, value))

static struct explored *with_handle(pthread_t handle) {
  for (uint32_t i = 0; i < explored_live_count; i++)
    if (pthread_equal(explored_live[i]->handle, handle)) return explored_live[i];
  return NULL;
}

INTERPOSED(int, pthread_kill, pthread_t handle, int signal) {
  struct explored *self = explore_current();
  if (self) explore_point(self, OP_KILL, NULL, HERE);
  struct explored *target = self ? with_handle(handle) : NULL;
  // The kernel discards it, unless the thread blocks it: what that thread blocks while it has no token does not count.
  bool is_sent = target && target != self && target->has_mask && signal > 0 && signal <= 64;
  bool is_discarded = is_sent && is_ignored(signal) && target->signals & 1ull << (signal - 1) &&
                      !explore_takes(target, signal);
  int result = is_discarded ? 0 : REAL(pthread_kill)(handle, signal);
  // No signal only asks whether the thread is there.
  if (!self || result != 0 || signal == 0) return result;
  if (target) explore_interrupt_by(target, signal);
  explore_point(self, OP_KILL, NULL, HERE);
  return 0;
}

static int await_signal(struct explored *self, const sigset_t *set, siginfo_t *information, uint64_t deadline,
                        const void *place) {
  explore_point(self, OP_SIGWAIT, NULL, place);
  for (;;) {
    struct timespec none = {0};
    long signal = SYSTEM4(SYS_rt_sigtimedwait, set, information, &none, 8);
    if (signal != -EAGAIN) return (int)signal;
    uint64_t wanted;
    memcpy(&wanted, set, sizeof wanted);
    explored_signals_sent = true;
    if (explore_wait_outside(self, OP_SIGWAIT, WAKES_SIGNALS, wanted, deadline, place) == ETIMEDOUT) return -EAGAIN;
  }
}

INTERPOSED(int, sigwait, const sigset_t *set, int *signal) {
  struct explored *self = explore_current();
  if (!self) return REAL(sigwait)(set, signal);
  int found = await_signal(self, set, NULL, NEVER, HERE);
  if (found < 0) return -found;
  *signal = found;
  return 0;
}

INTERPOSED(int, sigwaitinfo, const sigset_t *set, siginfo_t *information) {
  struct explored *self = explore_current();
  if (!self) return REAL(sigwaitinfo)(set, information);
  return (int)explore_result(await_signal(self, set, information, NEVER, HERE));
}

INTERPOSED(int, sigtimedwait, const sigset_t *set, siginfo_t *information, const struct timespec *time) {
  struct explored *self = explore_current();
  if (!self || !explore_is_duration(time)) return REAL(sigtimedwait)(set, information, time);
  return (int)explore_result(
      await_signal(self, set, information, explore_deadline(CLOCK_MONOTONIC, time, false), HERE));
}

/// Waits until a handler has run.
static int await_handler(struct explored *self, const uint64_t *mask, const void *place) {
  explore_point(self, OP_SIGWAIT, NULL, place);
  for (bool is_taken = explore_take_admitted(mask); !is_taken;) {
    self->waiting_mask = mask;
    bool is_ended = explore_wait_outside(self, OP_SIGWAIT, WAKES_CHILD, 0, NEVER, place) == EINTR;
    is_taken = is_ended && !(self->is_cancelled && explore_ends_by_cancelling(self));
    explore_test_cancel(self);
  }
  return (int)explore_result(-EINTR);
}

INTERPOSED(int, pause, void) {
  struct explored *self = explore_current();
  return self ? await_handler(self, NULL, HERE) : REAL(pause)();
}

INTERPOSED(int, sigsuspend, const sigset_t *set) {
  struct explored *self = explore_current();
  uint64_t mask;
  return self ? await_handler(self, explore_mask(set, &mask), HERE) : REAL(sigsuspend)(set);
}
