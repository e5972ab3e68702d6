// Waits with a mask of signals of their own. `missed`: the signal is let in before the wait, and may come between the two.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum call { PPOLL, PSELECT, PWAIT, PWAIT2, SUSPEND, CALLS };
static volatile sig_atomic_t users, alarms;
static sigset_t none, user, all;
static int ends[2], epoll;
static pthread_t first;

static void count(int signal) {
  if (signal == SIGALRM) alarms++;
  else users++;
}

/// Waits for the pipe with a mask, by one of the calls.
static int wait_with(enum call call, int milliseconds, const sigset_t *mask) {
  struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
  struct timespec *limit = milliseconds < 0 ? NULL : &time;
  struct pollfd descriptor = {.fd = ends[0], .events = POLLIN};
  struct epoll_event event;
  fd_set reads;
  switch (call) {
    case PPOLL: return ppoll(&descriptor, 1, limit, mask);
    case PSELECT:
      FD_ZERO(&reads);
      FD_SET(ends[0], &reads);
      return pselect(ends[0] + 1, &reads, NULL, NULL, limit, mask);
    case PWAIT: return epoll_pwait(epoll, &event, 1, milliseconds, mask);
    case PWAIT2: return epoll_pwait2(epoll, &event, 1, limit, mask);
    default: return sigsuspend(mask);
  }
}

static int is_interrupted(enum call call, int milliseconds, const sigset_t *mask) {
  errno = 0;
  return wait_with(call, milliseconds, mask) == -1 && errno == EINTR;
}

/// Whether the thread blocks the signal of the user.
static int is_blocked(void) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, NULL, &now);
  return sigismember(&now, SIGUSR1);
}

static void *send_one(void *to_thread) {
  if (to_thread) pthread_kill(first, SIGUSR1);
  else kill(getpid(), SIGUSR1);
  return NULL;
}

static void *sleep_once(void *unused) {
  const struct timespec time = {.tv_nsec = 1000000};
  return nanosleep(&time, NULL) == 0 ? &first : unused;
}

/// To ask whether a thread is there does not wake it.
static int check_question(void) {
  pthread_t sleeper;
  void *slept = NULL;
  pthread_create(&sleeper, NULL, sleep_once, NULL);
  for (int i = 0; i < 5; i++) pthread_kill(sleeper, 0);
  pthread_join(sleeper, &slept);
  return slept ? 0 : 9;
}

static int check(enum call call) {
  pthread_t sender;
  char byte = 0;
  int has_limit = call != SUSPEND;
  // Pending before the wait: of the thread, then of the process. Two of the calls look also if they have no time.
  users = 0;
  pthread_kill(first, SIGUSR1);
  if (users != 0 || !is_interrupted(call, -1, &none) || users != 1 || !is_blocked()) return 1;
  kill(getpid(), SIGUSR1);
  if (users != 1 || !is_interrupted(call, call < PWAIT ? 0 : -1, &none) || users != 2) return 2;
  // Sent by another thread, perhaps while this one waits.
  for (intptr_t to_thread = 0; to_thread < 2; to_thread++) {
    pthread_create(&sender, NULL, send_one, (void *)to_thread);
    if (!is_interrupted(call, -1, &none) || users != 3 + to_thread || !is_blocked()) return 3;
    pthread_join(sender, NULL);
  }
  if (!has_limit) return 0;
  // A signal that only the mask blocks comes when the wait is over.
  struct itimerval soon = {.it_value.tv_usec = 1000};
  alarms = 0;
  setitimer(ITIMER_REAL, &soon, NULL);
  if (wait_with(call, 50, &all) != 0 || alarms != 1) return 4;
  // One that is ignored does not end the wait. (In the kernel it does end those of epoll.)
  signal(SIGUSR1, SIG_IGN);
  pthread_kill(first, SIGUSR1);
  if (call < PWAIT && wait_with(call, 1, &none) != 0) return 5;
  signal(SIGUSR1, count);
  // What is ready comes first, and leaves the signal pending.
  users = 0;
  if (write(ends[1], &byte, 1) != 1) return 6;
  pthread_kill(first, SIGUSR1);
  if (wait_with(call, -1, &none) != 1 || users != 0) return 7;
  if (read(ends[0], &byte, 1) != 1 || !is_interrupted(call, -1, &none) || users != 1) return 8;
  return 0;
}

int main(int arguments, char **names) {
  first = pthread_self();
  sigemptyset(&none);
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  sigfillset(&all);
  signal(SIGUSR1, count);
  signal(SIGALRM, count);
  if (pipe(ends) != 0 || (epoll = epoll_create1(0)) < 0) return 100;
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
  pthread_sigmask(SIG_BLOCK, &user, NULL);
  if (arguments > 1 && strcmp(names[1], "missed") == 0) {
    pthread_t sender;
    pthread_create(&sender, NULL, send_one, (void *)1);
    pthread_sigmask(SIG_UNBLOCK, &user, NULL);
    if (users == 0) wait_with(PPOLL, -1, NULL);
    return pthread_join(sender, NULL);
  }
  for (enum call call = PPOLL; call < CALLS; call++) {
    int failure = check(call);
    if (failure) return 10 * (int)call + failure;
  }
  return check_question();
}
