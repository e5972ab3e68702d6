// A thread beside the schedule. It notices that the thread with the token has come to no point for a second: it computes,
// or the kernel holds it in a call that is not interposed. Both end the run, since no other thread would ever run.

#include "exploring.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/// Between two looks at a thread: usually, and while it is asked where it is.
static const long usual_look = 5000000, soon = 1000000;
static struct explored *watched;
static uint32_t is_placed;

static uint64_t used_by(uint32_t id) {
  struct timespec time;
  // The kernel's clock of a thread: the inverted id, then "per thread" and "as scheduled".
  if (SYSTEM3(SYS_clock_gettime, (clockid_t)(~id << 3 | 6), &time, 0) != 0) return 0;
  return (uint64_t)time.tv_sec * NANOSECONDS + (uint64_t)time.tv_nsec;
}

/// The number of the call that the thread sleeps in; -1 if it runs.
static long call_of(uint32_t id) {
  char path[64] = "/proc/self/task/", digits[16], text[64];
  int count = 0;
  do digits[count++] = (char)('0' + id % 10);
  while ((id /= 10) != 0);
  size_t length = strlen(path);
  while (count > 0) path[length++] = digits[--count];
  memcpy(path + length, "/syscall", sizeof "/syscall");
  int file = (int)SYSTEM4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  long size = file < 0 ? 0 : SYSTEM3(SYS_read, file, text, sizeof text - 1);
  if (file >= 0) SYSTEM1(SYS_close, file);
  text[size > 0 ? size : 0] = 0;
  return text[0] >= '0' && text[0] <= '9' ? strtol(text, NULL, 10) : -1;
}

// Shows where the thread is, which does not go on.
static void show_place(int signal, siginfo_t *information, void *context) {
  (void)signal, (void)information;
  const mcontext_t *machine = &((const ucontext_t *)context)->uc_mcontext;
#if defined(__x86_64__)
  uintptr_t frame[2] = {(uintptr_t)machine->gregs[REG_RBP], (uintptr_t)machine->gregs[REG_RIP]};
#else
  uintptr_t frame[2] = {machine->regs[29], machine->pc};
#endif
  struct concourse_exploring_thread *shown =
      (struct concourse_exploring_thread *)((char *)explored_file + explored_file->threads_offset) + watched->number;
  uint64_t outer[CONCOURSE_EXPLORING_FRAMES];
  shown->frames[0] = frame[1];
  uint16_t count = explore_frames(watched, (void *)frame[0], outer);
  if (count == CONCOURSE_EXPLORING_FRAMES) count--;
  for (uint16_t i = 0; i < count; i++) shown->frames[i + 1] = outer[i];
  shown->frame_count = count + 1;
  // ORDERING: releasing; the watchdog that sees it sees the frames.
  __atomic_store_n(&is_placed, 1, __ATOMIC_RELEASE);
  for (;;) SYSTEM3(SYS_pause, 0, 0, 0);
}

static void end(struct explored *thread, uint32_t outcome, uint64_t detail) {
  struct sigaction action = {.sa_sigaction = show_place, .sa_flags = SA_SIGINFO};
  watched = thread;
  explore_show(thread);
  // One of the signals that the engine's threads do not block.
  explore_set_action(SIGPROF, &action, NULL);
  SYSTEM3(SYS_tgkill, SYSTEM1(SYS_getpid, 0), thread->id, SIGPROF);
  // ORDERING: acquiring; pairs with the store in `show_place`.
  for (int i = 0; i < 200 && !__atomic_load_n(&is_placed, __ATOMIC_ACQUIRE); i++) {
    struct timespec moment = {.tv_nsec = 1000000};
    SYSTEM3(SYS_nanosleep, &moment, NULL, 0);
  }
  explore_finish(outcome, thread->number, detail);
}

static void *watch(void *unused) {
  (void)unused;
  uint64_t steps = 0, used = 0, busy = 0, waited = 0, looked_at_call = 0;
  const struct explored *last = NULL;
  for (;;) {
    bool asks = busy > explore_spin_patience();
    struct timespec time = {.tv_nsec = asks ? soon : usual_look};
    SYSTEM3(SYS_nanosleep, &time, NULL, 0);
    // ORDERING: relaxed, all; a look that comes too early is repeated.
    uint64_t seen = __atomic_load_n(&explored_file->steps, __ATOMIC_RELAXED);
    struct explored *thread = &explored_threads[__atomic_load_n(&explored_file->running, __ATOMIC_RELAXED)];
    // The step comes before the thread that it chooses.
    if (seen != steps || thread != last || __atomic_load_n(&explored_waits, __ATOMIC_RELAXED)) {
      steps = seen;
      last = thread;
      used = used_by(thread->id);
      busy = waited = looked_at_call = 0;
      continue;
    }
    waited += (uint64_t)time.tv_nsec;
    uint64_t before = busy;
    busy = used_by(thread->id) - used;
    if (busy > NANOSECONDS) end(thread, CONCOURSE_EXPLORING_SPINNING, 0);
    // One that sleeps in a call, or gets no processor, does not spin.
    if (busy > explore_spin_patience() && busy > before) explore_ask(thread);
    if (waited - looked_at_call < NANOSECONDS) continue;
    looked_at_call = waited;
    long call = call_of(thread->id);
    // A thread that gets no processor is in no call, or soon no longer.
    if (call >= 0 && used_by(thread->id) - used < NANOSECONDS / 10 && call_of(thread->id) == call)
      end(thread, CONCOURSE_EXPLORING_BLOCKED_UNSEEN, (uint64_t)call);
  }
  return NULL;
}

void explore_watch(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, previous;
  sigfillset(&all);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  // Not that of the thread sanitizer.
  int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  *(void **)&create = explore_real("pthread_create");
  create(&thread, &attributes, watch, NULL);
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pthread_attr_destroy(&attributes);
}
